// SPDX-License-Identifier: Apache-2.0
/// Tables that libcuda gives out by cuGetExportTable and NVIDIA does not document, as far as a library that
/// programs use depends on them. Measured: H200, driver 580.159.04, and the cuFFT 12 that comes with PyTorch
/// 2.11.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "shared/abi/cuda_driver.h"

namespace firebreak::abi {

/// An id as it is written: 32 hexadecimal digits, in groups.
consteval CUuuid id_of(std::string_view text) {
  CUuuid id{};
  std::size_t digits = 0;
  for (const char each : text) {
    if (each == '-') continue;
    const int value = each >= 'a' ? each - 'a' + 10 : each - '0';
    char& byte = id.bytes[digits++ / 2];
    byte = static_cast<char>(static_cast<unsigned char>(byte) << 4 | value);
  }
  return id;
}

/// Its first word is its size in bytes, 0x318 in that driver. What follows are functions. cuFFT and cuBLAS
/// ask for it.
inline constexpr CUuuid module_table_id = id_of("6e163fbe-b958-444d-835c-e182aff1991e");

/// Calls `take` for each function of the module, which need not be of that context, nor of that driver. 1:
/// done. cuFFT takes the kernels of code whose kernels' names it does not know, since each such module has
/// one.
using CudaEachFunction = int (*)(CUcontext context, CUmodule module,
                                 void (*take)(void* data, CUfunction function), void* data);
inline constexpr std::size_t module_table_each_function = 7;

/// Its first word is its size in bytes, 0x2e8 in that driver. cuBLAS 13 asks for it in cublasGemmEx, to tell
/// streams apart (H100, llama.cpp).
inline constexpr CUuuid stream_table_id = id_of("21318c60-9714-3248-8ca6-41ff7324c8f2");

/// A number of that context, which it takes for an address of its own without a look.
using CudaContextNumber = CUresult (*)(CUcontext context, std::uint64_t* number);
inline constexpr std::size_t stream_table_context = 4;

/// Returns what the driver has of a stream, an object of its own. It takes the stream for an address of its
/// own without a look: for a stream of another driver, or one that is gone, it answers whatever lies there.
/// The context counts for the default streams alone, which are the thread's where `of_thread` is not 0.
using CudaStreamObject = CUresult (*)(CUcontext context, CUstream stream, void** object, int of_thread);
inline constexpr std::size_t stream_table_object = 51;

/// A word of such an object, which it takes for an address of its own without a look, too. The context does
/// not count.
using CudaStreamWord = CUresult (*)(CUcontext context, void* object, std::uint64_t* word);
inline constexpr std::size_t stream_table_word = 39;

inline bool is(const CUuuid& id, const CUuuid& other) {
  return std::memcmp(id.bytes, other.bytes, sizeof id.bytes) == 0;
}

}  // namespace firebreak::abi
