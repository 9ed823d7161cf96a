// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/device_uuid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "softgpu/environment.h"

namespace firebreak::softgpu {

namespace {
constexpr unsigned long most_gpus = 8;
}

std::string uuid_text(std::uint32_t gpu) {
  const DeviceUuid uuid = device_uuid_of(gpu);
  std::string text = "GPU";
  for (std::size_t at = 0; at < uuid.size(); ++at) {
    const bool begins_group = at == 0 || at == 4 || at == 6 || at == 8 || at == 10;
    text += fmt::format("{}{:02x}", begins_group ? "-" : "", uuid[at]);
  }
  return text;
}

std::uint32_t gpu_count_from_environment() {
  const char* text = std::getenv(environment::count);
  const unsigned long count = text == nullptr ? 1 : std::strtoul(text, nullptr, 10);
  return static_cast<std::uint32_t>(std::clamp(count, 1UL, most_gpus));
}

std::uint32_t gpu_from_environment() {
  const char* named = std::getenv(environment::visible_devices);
  if (named == nullptr || *named == '\0') return 0;
  const std::uint32_t count = gpu_count_from_environment();
  for (std::uint32_t gpu = 0; gpu < count; ++gpu) {
    if (uuid_text(gpu).starts_with(named)) return gpu;
  }
  return 0;
}

}  // namespace firebreak::softgpu
