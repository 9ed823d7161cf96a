// SPDX-License-Identifier: Apache-2.0
#include "stage/step_mark.h"

#include <charconv>
#include <string_view>

namespace firebreak::stage {

std::optional<StepMark> parse_step_mark(const std::string& line) {
  constexpr std::string_view word = "step ";
  if (!line.starts_with(word)) return std::nullopt;
  StepMark mark;
  const char* end = line.data() + line.size();
  const auto step = std::from_chars(line.data() + word.size(), end, mark.step);
  if (step.ec != std::errc() || step.ptr == end) return std::nullopt;
  const auto at = std::from_chars(step.ptr + 1, end, mark.at_ns);
  return at.ec == std::errc() && at.ptr == end ? std::optional(mark) : std::nullopt;
}

}  // namespace firebreak::stage
