// SPDX-License-Identifier: Apache-2.0
/// Address ranges that a program makes on its own /dev/nvidia-uvm descriptor, in our own declarations. Where
/// each fact is from:
///   - request numbers, field order and sizes: kernel-open/nvidia-uvm/uvm_ioctl.h of NVIDIA's open kernel
///     modules; what is refused, and with which status: uvm_api.h (uvm_api_range_invalid_aligned),
///     uvm_map_external.c and uvm_range_tree.c there; the status values: nvstatuscodes.h;
///   - that 73 and 74 work as described on driver 580.159.04, also through a descriptor that another process
///     duplicated, and that 34 gives the addresses back: seen on an H100.
/// There is also the managed range, which needs no request: mmap() of the descriptor, shared, readable and
/// writable, with an offset that equals the address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace firebreak::abi {

/// Requests of ioctl(); plain numbers, not the usual encoding of size and direction.
inline constexpr unsigned long uvm_free = 34;
inline constexpr unsigned long uvm_create_external_range = 73;
inline constexpr unsigned long uvm_map_external_sparse = 74;

/// NV_STATUS values that these requests answer beside those in shared/abi/uvm_tools.h.
inline constexpr std::uint32_t nv_err_invalid_device = 38;  ///< the VA space has no such GPU
inline constexpr std::uint32_t nv_err_no_memory = 81;
inline constexpr std::uint32_t nv_err_uvm_address_in_use = 104;  ///< overlaps a range of any kind

/// Base and length of uvm_create_external_range and uvm_free are multiples of this. Address 0 is refused, so
/// page zero can be no external range, whatever the caller's rights.
inline constexpr std::uint64_t uvm_range_alignment_bytes = 4096;
/// Base and length of uvm_map_external_sparse are multiples of this: the lowest sparse address is 0x10000.
inline constexpr std::uint64_t uvm_sparse_alignment_bytes = 65536;

/// Argument of uvm_create_external_range, which looks at no CPU mapping, and of uvm_free, which wants exactly
/// the base and length that a range was made with.
struct UvmRange {
  std::uint64_t base;
  std::uint64_t length;
  std::uint32_t rm_status;
  std::uint32_t padding;
};
static_assert(sizeof(UvmRange) == 24);
static_assert(offsetof(UvmRange, length) == 8);
static_assert(offsetof(UvmRange, rm_status) == 16);

/// Argument of uvm_map_external_sparse: a part of one external range, or all of it.
struct UvmMapExternalSparse {
  std::uint64_t base;
  std::uint64_t length;
  std::array<std::uint8_t, 16> gpu_uuid;
  std::uint32_t rm_status;
  std::uint32_t padding;
};
static_assert(sizeof(UvmMapExternalSparse) == 40);
static_assert(offsetof(UvmMapExternalSparse, gpu_uuid) == 16);
static_assert(offsetof(UvmMapExternalSparse, rm_status) == 32);

}  // namespace firebreak::abi
