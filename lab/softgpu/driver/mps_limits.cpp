// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/mps_limits.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "ground/base/units.h"
#include "ground/os/self.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::driver {

namespace {

constexpr std::string_view first_device = "0=";

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr == text.data() + text.size()) return std::nullopt;
  switch (*parsed.ptr) {
    case 'G':
    case 'g':
      return number * gib;
    case 'M':
    case 'm':
      return number * mib;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::uint64_t> parse_memory_limit(std::string_view text) {
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    if (entry.starts_with(first_device)) return parse_size(entry.substr(first_device.size()));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
  }
  return std::nullopt;
}

int sms_of_share(std::string_view percentage, int all) {
  double share = 0;
  const auto parsed = std::from_chars(percentage.data(), percentage.data() + percentage.size(), share);
  if (parsed.ec != std::errc{} || share <= 0 || share >= 100) return all;
  return std::max(static_cast<int>(share / 100 * all), 1);
}

std::optional<std::uint64_t> memory_limit_from_environment() {
  const auto text = os::environment_variable(environment::mps_pinned_device_mem_limit);
  return text ? parse_memory_limit(*text) : std::nullopt;
}

int sm_count_from_environment(int all) {
  const auto text = os::environment_variable(environment::mps_active_thread_percentage);
  return text ? sms_of_share(*text, all) : all;
}

}  // namespace firebreak::softgpu::driver
