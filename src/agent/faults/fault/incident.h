// SPDX-License-Identifier: Apache-2.0
/// One fault as everybody saw it: the signals that belong together, and who caused it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/faults/fault/fault.h"

namespace firebreak::fault {

/// How sure the culprit's name is.
enum class Confidence {
  Unknown,   ///< nobody is named: a wrong name is worse than none
  Probable,  ///< the evidence fits one process, and another could have left the same
  Certain,   ///< a source that was never seen to be wrong names it
};

/// The culprit of a fault, and why we say so.
struct Culprit {
  Confidence confidence = Confidence::Unknown;
  std::optional<pid_t> pid;           ///< empty where the confidence is Unknown
  std::optional<std::string> tenant;  ///< its name, where it has one
  std::vector<std::string> evidence;  ///< one line each, the strongest first
};

/// Signals of one fault, merged. An Xid 13, its 43 and the 45s that follow are one incident.
struct Incident {
  std::uint64_t id = 0;  ///< counts up from 1 in one run
  FaultClass fault_class = FaultClass::Unknown;
  std::string kind;  ///< kind that the most telling signal names
  Gpu gpu;
  std::string domain;  ///< empty: not known, or no MPS domain
  Culprit culprit;
  std::optional<std::uint64_t> address;
  std::vector<int> xids;       ///< Xids, each once, in the order in which it first showed
  std::vector<Fault> signals;  ///< signals in the order of their times
  bool closed = false;         ///< a closed incident takes in no further signal; a later one is another
                               ///< incident

  Monotonic first_seen() const { return signals.empty() ? Monotonic{} : signals.front().when; }
};

/// True when its process alone ends: the driver itself kept it from the others, and nothing says otherwise.
bool is_contained(const Incident& incident);

const char* to_string(Confidence confidence);

}  // namespace firebreak::fault
