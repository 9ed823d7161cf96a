// SPDX-License-Identifier: Apache-2.0
/// Stream memory operations: a stream waits for a word in memory, or writes one.
#pragma once

#include <cstdint>
#include <memory>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/process.h"

namespace firebreak::softgpu::driver {

struct ValueOperation {
  std::uint64_t address = 0;
  std::uint64_t value = 0;
  std::uint32_t size_bytes = 4;  ///< 4 or 8
  unsigned int flags = 0;        ///< CUstreamWaitValue_flags; nothing for writes
};

/// INVALID_VALUE for a flag that there is not, a misaligned address, or one that is not mapped now.
CUresult submit_wait_value(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                           const ValueOperation& operation);
CUresult submit_write_value(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                            const ValueOperation& operation);

}  // namespace firebreak::softgpu::driver
