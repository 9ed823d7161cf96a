// SPDX-License-Identifier: Apache-2.0
/// A victim launches one short kernel after the other. This is what it keeps, and the line in which it tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::characterize {

/// Time from the end of one kernel to the end of the next. CLOCK_MONOTONIC.
struct Gap {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::int64_t length_ns() const { return to_ns - from_ns; }
};

struct VictimRecord {
  std::uint64_t kernels = 0;
  std::vector<Gap> gaps;  ///< the longest, the longest first
  std::string error;      ///< the CUDA error that ended it; empty: it was told to end
  std::int64_t error_at_ns = 0;
};

/// Takes constant time and memory a kernel, so that it does not shape what it measures.
class VictimLog {
 public:
  /// How many gaps are kept.
  static constexpr std::size_t most_gaps = 16;

  /// Forgets what was; the first gap begins now.
  void begin(std::int64_t now_ns);
  void kernel_done(std::int64_t now_ns);
  /// The last gap ends with the error instead of a kernel.
  void failed(std::int64_t now_ns, std::string error);

  const VictimRecord& record() const { return record_; }

 private:
  void keep(std::int64_t now_ns);

  VictimRecord record_;
  std::int64_t last_ns_ = 0;
};

/// One line of JSON.
std::string to_line(const VictimRecord& record);
/// Protocol when the line is no record.
Result<VictimRecord> parse_victim_record(const std::string& line);

}  // namespace firebreak::characterize
