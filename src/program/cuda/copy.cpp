// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/copy.h"

namespace firebreak::cuda {

Status copy_to_device(const Driver& driver, CUdeviceptr to, std::span<const std::byte> from) {
  return driver.check(driver->cuMemcpyHtoD(to, from.data(), from.size()), "cuMemcpyHtoD");
}

Status copy_to_host(const Driver& driver, std::span<std::byte> to, CUdeviceptr from) {
  return driver.check(driver->cuMemcpyDtoH(to.data(), from, to.size()), "cuMemcpyDtoH");
}

Status copy_on_device(const Driver& driver, CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return driver.check(driver->cuMemcpyDtoD(to, from, size_bytes), "cuMemcpyDtoD");
}

Status copy_to_device(const Driver& driver, CUdeviceptr to, std::span<const std::byte> from,
                      CUstream stream) {
  return driver.check(driver->cuMemcpyHtoDAsync(to, from.data(), from.size(), stream), "cuMemcpyHtoDAsync");
}

Status copy_to_host(const Driver& driver, std::span<std::byte> to, CUdeviceptr from, CUstream stream) {
  return driver.check(driver->cuMemcpyDtoHAsync(to.data(), from, to.size(), stream), "cuMemcpyDtoHAsync");
}

Status copy_on_device(const Driver& driver, CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes,
                      CUstream stream) {
  return driver.check(driver->cuMemcpyDtoDAsync(to, from, size_bytes, stream), "cuMemcpyDtoDAsync");
}

Status fill_bytes(const Driver& driver, CUdeviceptr to, std::uint8_t value, std::size_t count) {
  return driver.check(driver->cuMemsetD8(to, value, count), "cuMemsetD8");
}

Status fill_words(const Driver& driver, CUdeviceptr to, std::uint32_t value, std::size_t count) {
  return driver.check(driver->cuMemsetD32(to, value, count), "cuMemsetD32");
}

Status fill_bytes(const Driver& driver, CUdeviceptr to, std::uint8_t value, std::size_t count,
                  CUstream stream) {
  return driver.check(driver->cuMemsetD8Async(to, value, count, stream), "cuMemsetD8Async");
}

Status fill_words(const Driver& driver, CUdeviceptr to, std::uint32_t value, std::size_t count,
                  CUstream stream) {
  return driver.check(driver->cuMemsetD32Async(to, value, count, stream), "cuMemsetD32Async");
}

}  // namespace firebreak::cuda
