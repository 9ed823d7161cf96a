// SPDX-License-Identifier: Apache-2.0
/// Options of both sample tenants' command lines.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace firebreak::workloads {

enum class Size {
  Small,   ///< suits the software GPU: a step of some milliseconds
  Medium,  ///< suits a real GPU
};

const char* to_string(Size size);

struct Options {
  Size size = Size::Small;
  std::uint64_t steps = 0;  ///< 0: as many as the size suggests
  std::uint64_t seed = 1;
  std::string output;             ///< file; empty: none
  std::uint32_t pace_ms = 0;      ///< a step takes at least this long
  std::string slow_until;         ///< file; the pace holds until it is there, and so does the last step
  bool standalone = false;        ///< joins no agent, whatever the environment says
  bool progress = false;          ///< says each step that is done on standard output: "step 12 AT_NS"
  std::uint32_t standby_sms = 8;  ///< size of the context that a standby waits in; 0: a full one
  std::uint32_t more_memory = 0;  ///< number of further allocations, each of which holds a word of its own
  std::uint32_t children = 0;     ///< number of children that do nothing but have what this process had open
  bool start_on_input = false;    ///< an active's first step waits for a line on standard input
};

/// The program is over with this status; everything has been said.
struct ExitStatus {
  int value = 0;
};

std::variant<Options, ExitStatus> parse_options(const std::string& description, int argument_count,
                                                const char* const* arguments);

}  // namespace firebreak::workloads
