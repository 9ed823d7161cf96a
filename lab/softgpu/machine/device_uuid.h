// SPDX-License-Identifier: Apache-2.0
/// Names of the software GPUs, on every machine, and which of them is whose.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace firebreak::softgpu {

using DeviceUuid = std::array<std::uint8_t, 16>;

/// UUID of the first, which is the only one unless the environment says otherwise.
inline constexpr DeviceUuid device_uuid{'f', 'i', 'r', 'e', 'b', 'r', 'e', 'a',
                                        'k', '-', 's', 'o', 'f', 't', '-', '0'};

/// `gpu` counts from 0.
constexpr DeviceUuid device_uuid_of(std::uint32_t gpu) {
  DeviceUuid uuid = device_uuid;
  uuid.back() = static_cast<std::uint8_t>('0' + gpu);
  return uuid;
}

/// Writes it as the driver does: "GPU-66697265-...".
std::string uuid_text(std::uint32_t gpu);

/// The first one's PCI address is 0000:00:05, the next one's 0000:00:06.
inline constexpr std::uint32_t first_pci_slot = 5;

/// How many there are (environment::count).
std::uint32_t gpu_count_from_environment();

/// Returns on which of them this process computes (environment::visible_devices).
std::uint32_t gpu_from_environment();

}  // namespace firebreak::softgpu
