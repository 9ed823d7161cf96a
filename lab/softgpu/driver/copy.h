// SPDX-License-Identifier: Apache-2.0
/// Copies and fills as work on a stream: what is checked when they are called, and where host memory that the
/// GPU cannot address comes in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/memory_pieces.h"
#include "softgpu/driver/process.h"

namespace firebreak::softgpu::driver {

/// Rows of `width_bytes`, `pitch` bytes apart on each side; one row for plain copies.
struct CopyShape {
  std::uint64_t width_bytes = 0;
  std::uint64_t height = 1;
  std::uint64_t source_pitch_bytes = 0;
  std::uint64_t destination_pitch_bytes = 0;
};

/// A pointer that the program calls the GPU's, or the host's, or that may be either.
enum class PointerRole { Gpu, Host, Either };
struct CopyPointer {
  std::uint64_t address = 0;
  PointerRole role = PointerRole::Either;
};

struct CopyRequest {
  CopyPointer destination;
  CopyPointer source;
  CopyShape shape;
  bool wait = false;  ///< return when it is done
};

/// The work of such a copy, which reads and writes host memory when it is done: of a graph. INVALID_VALUE as
/// below.
Answer<Work> work_of_copy(Process& process, const CopyRequest& request);

/// INVALID_VALUE when a GPU pointer is not mapped now. Pageable host memory is read before this returns, and
/// written before it returns.
CUresult submit_copy(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                     const CopyRequest& request);

struct FillRequest {
  std::uint64_t address = 0;
  std::uint64_t pattern = 0;
  std::uint32_t pattern_bytes = 1;
  std::uint64_t width = 0;  ///< elements of a row
  std::uint64_t height = 1;
  std::uint64_t pitch_bytes = 0;
  bool wait = false;
};

Answer<Work> work_of_fill(Process& process, const FillRequest& request);
CUresult submit_fill(Process& process, Context& context, const std::shared_ptr<Stream>& stream,
                     const FillRequest& request);

}  // namespace firebreak::softgpu::driver
