// SPDX-License-Identifier: Apache-2.0
/// The stores of a kernel that runs on after its process has died, since a child of fork() has what was its
/// on the GPU. Nobody can run that kernel; so what it may have been storing is stored once more, over and
/// over: at every place that its parameters point at, what stood there when its process died. Before somebody
/// else writes there nobody sees that; who does so beside it loses what he wrote.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ground/os/fd.h"
#include "ground/os/kernel.h"
#include "softgpu/machine/rm_client.h"

namespace firebreak::softgpu::mps {

struct StoredAgain {
  os::Fd memory;
  std::uint64_t offset_bytes = 0;
  std::array<std::byte, stored_again_bytes> value{};
};

/// This is about a process that has just died. It is empty where that has no child that lives, or no kernel
/// that stored.
std::vector<StoredAgain> stores_of(os::Kernel& kernel, const RmClient& client);

void store_again(const std::vector<StoredAgain>& stores);

}  // namespace firebreak::softgpu::mps
