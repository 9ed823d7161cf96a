// SPDX-License-Identifier: Apache-2.0
#include "tests/virtual/event_program.h"

#include <bit>

#include "ground/base/clock.h"

namespace firebreak::test {
namespace {

std::int64_t now_ns() { return to_ns(SystemClock().now()); }

}  // namespace

CUresult EventProgram::record(Event& event) {
  CUresult result = CUDA_SUCCESS;
  if (stream_ == nullptr) result = driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  event.before_ns = now_ns();
  return result == CUDA_SUCCESS ? driver_.cuEventRecord(event.handle, stream_) : result;
}

/// A float has 24 bits.
bool EventProgram::is_right(const Event& first, const Event& second, float milliseconds) const {
  constexpr double rounding = 1.0 / (1 << 22);
  const double host_ms = static_cast<double>(second.after_ns - first.before_ns) / 1e6;
  return milliseconds >= 0 && milliseconds <= host_ms * (1 + rounding);
}

std::pair<CUresult, unsigned long long> EventProgram::run(const std::string& what, std::istream& words) {
  std::size_t number = 0;
  words >> number;
  Event& event = events_.at(number);
  if (what == "record") return {record(event), 0};
  if (what == "wait") {
    const CUresult result = driver_.cuEventSynchronize(event.handle);
    event.after_ns = now_ns();
    return {result, 0};
  }
  if (what == "drain") return {driver_.cuStreamSynchronize(stream_), 0};
  std::size_t more = 0;
  words >> more;
  if (what == "make") return {driver_.cuEventCreate(&event.handle, static_cast<unsigned int>(more)), 0};
  const Event& second = events_.at(more);
  float milliseconds = -1;
  const CUresult result = driver_.cuEventElapsedTime(&milliseconds, event.handle, second.handle);
  if (what == "is_right") return {result, is_right(event, second, milliseconds) ? 1 : 0};
  return {result, std::bit_cast<std::uint32_t>(milliseconds)};
}

}  // namespace firebreak::test
