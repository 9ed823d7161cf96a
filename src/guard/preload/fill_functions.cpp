// SPDX-License-Identifier: Apache-2.0
/// Fills, in the driver's place.
#include "guard/preload/counting.h"
#include "guard/preload/work_functions.h"

using firebreak::guard::counted;
using firebreak::guard::counted_per_thread;

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return counted<"cuMemsetD8_v2">(nullptr, to, value, count);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, std::size_t count) {
  return counted_per_thread<"cuMemsetD8_v2_ptds">(nullptr, to, value, count);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value, std::size_t width,
                         std::size_t height) {
  return counted<"cuMemsetD2D8_v2">(nullptr, to, pitch_bytes, value, width, height);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value, std::size_t width,
                              std::size_t height) {
  return counted_per_thread<"cuMemsetD2D8_v2_ptds">(nullptr, to, pitch_bytes, value, width, height);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return counted<"cuMemsetD8Async">(stream, to, value, count, stream);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return counted_per_thread<"cuMemsetD8Async_ptsz">(stream, to, value, count, stream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value, std::size_t width,
                           std::size_t height, CUstream stream) {
  return counted<"cuMemsetD2D8Async">(stream, to, pitch_bytes, value, width, height, stream);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value,
                                std::size_t width, std::size_t height, CUstream stream) {
  return counted_per_thread<"cuMemsetD2D8Async_ptsz">(stream, to, pitch_bytes, value, width, height, stream);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return counted<"cuMemsetD16_v2">(nullptr, to, value, count);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, std::size_t count) {
  return counted_per_thread<"cuMemsetD16_v2_ptds">(nullptr, to, value, count);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value, std::size_t width,
                          std::size_t height) {
  return counted<"cuMemsetD2D16_v2">(nullptr, to, pitch_bytes, value, width, height);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value,
                               std::size_t width, std::size_t height) {
  return counted_per_thread<"cuMemsetD2D16_v2_ptds">(nullptr, to, pitch_bytes, value, width, height);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return counted<"cuMemsetD16Async">(stream, to, value, count, stream);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return counted_per_thread<"cuMemsetD16Async_ptsz">(stream, to, value, count, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return counted<"cuMemsetD2D16Async">(stream, to, pitch_bytes, value, width, height, stream);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value,
                                 std::size_t width, std::size_t height, CUstream stream) {
  return counted_per_thread<"cuMemsetD2D16Async_ptsz">(stream, to, pitch_bytes, value, width, height, stream);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, std::size_t count) {
  return counted<"cuMemsetD32_v2">(nullptr, to, value, count);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, std::size_t count) {
  return counted_per_thread<"cuMemsetD32_v2_ptds">(nullptr, to, value, count);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value, std::size_t width,
                          std::size_t height) {
  return counted<"cuMemsetD2D32_v2">(nullptr, to, pitch_bytes, value, width, height);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value, std::size_t width,
                               std::size_t height) {
  return counted_per_thread<"cuMemsetD2D32_v2_ptds">(nullptr, to, pitch_bytes, value, width, height);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream) {
  return counted<"cuMemsetD32Async">(stream, to, value, count, stream);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream) {
  return counted_per_thread<"cuMemsetD32Async_ptsz">(stream, to, value, count, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return counted<"cuMemsetD2D32Async">(stream, to, pitch_bytes, value, width, height, stream);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value,
                                 std::size_t width, std::size_t height, CUstream stream) {
  return counted_per_thread<"cuMemsetD2D32Async_ptsz">(stream, to, pitch_bytes, value, width, height, stream);
}
