// SPDX-License-Identifier: Apache-2.0
/// The file that CUDA's core dump mode writes: an ELF file with the state of the GPU, as far as somebody
/// reads it to find out who has faulted. Sections, entries and their sizes are those of an H100's (driver
/// 580.159.04); what nobody looks at is zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "softgpu/interpreter/interpreter.h"
#include "softgpu/machine/domain.h"

namespace firebreak::softgpu::driver {

/// Its kernels are all on the first, wherever their blocks lie (softgpu/machine/halted_multiprocessor.h).
inline constexpr std::uint32_t core_dump_sms = multiprocessors;
inline constexpr std::size_t core_dump_bytes = 249'928;

/// A kernel that was on the GPU, and stands still.
struct DumpedKernel {
  Dimensions grid;
  Dimensions block;
  std::uint64_t program_counter = 0;
  bool halted = false;  ///< the exception is its own
};

/// `exception` is that of the domain, whoever has caused it: the SM's entry has it in the dump of every
/// client.
std::vector<std::byte> core_dump_file(const SmException& exception, const std::vector<DumpedKernel>& kernels);

}  // namespace firebreak::softgpu::driver
