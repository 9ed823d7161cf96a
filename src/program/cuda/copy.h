// SPDX-License-Identifier: Apache-2.0
/// Copies and fills. Without a stream they end before the function returns; with one they are queued, and
/// host memory must stay until the stream got there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "program/cuda/driver.h"

namespace firebreak::cuda {

Status copy_to_device(const Driver& driver, CUdeviceptr to, std::span<const std::byte> from);
Status copy_to_host(const Driver& driver, std::span<std::byte> to, CUdeviceptr from);
Status copy_on_device(const Driver& driver, CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes);

Status copy_to_device(const Driver& driver, CUdeviceptr to, std::span<const std::byte> from, CUstream stream);
Status copy_to_host(const Driver& driver, std::span<std::byte> to, CUdeviceptr from, CUstream stream);
Status copy_on_device(const Driver& driver, CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes,
                      CUstream stream);

Status fill_bytes(const Driver& driver, CUdeviceptr to, std::uint8_t value, std::size_t count);
/// `to` is a multiple of 4; `count` is in words.
Status fill_words(const Driver& driver, CUdeviceptr to, std::uint32_t value, std::size_t count);
Status fill_bytes(const Driver& driver, CUdeviceptr to, std::uint8_t value, std::size_t count,
                  CUstream stream);
Status fill_words(const Driver& driver, CUdeviceptr to, std::uint32_t value, std::size_t count,
                  CUstream stream);

}  // namespace firebreak::cuda
