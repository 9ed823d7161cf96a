// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/stream.h"

namespace firebreak::cuda {

Result<Stream> Stream::create(const Driver& driver, unsigned int flags, int priority) {
  CUstream stream = nullptr;
  const auto status = driver.check(driver->cuStreamCreateWithPriority(&stream, flags, priority),
                                   "cuStreamCreateWithPriority");
  if (!status) return propagate(status);
  return Stream(driver, stream);
}

Status Stream::synchronize() const {
  return driver().check(driver()->cuStreamSynchronize(handle()), "cuStreamSynchronize");
}

Result<bool> Stream::idle() const {
  const CUresult result = driver()->cuStreamQuery(handle());
  if (result == CUDA_ERROR_NOT_READY) return false;
  const auto status = driver().check(result, "cuStreamQuery");
  if (!status) return propagate(status);
  return true;
}

Status Stream::wait_for(const Event& event) const {
  return driver().check(driver()->cuStreamWaitEvent(handle(), event.handle(), CU_EVENT_WAIT_DEFAULT),
                        "cuStreamWaitEvent");
}

Status Stream::wait_value(CUdeviceptr address, std::uint32_t value, unsigned int how) const {
  return driver().check(driver()->cuStreamWaitValue32(handle(), address, value, how), "cuStreamWaitValue32");
}

Status Stream::wait_value64(CUdeviceptr address, std::uint64_t value, unsigned int how) const {
  return driver().check(driver()->cuStreamWaitValue64(handle(), address, value, how), "cuStreamWaitValue64");
}

Status Stream::write_value(CUdeviceptr address, std::uint32_t value, unsigned int flags) const {
  return driver().check(driver()->cuStreamWriteValue32(handle(), address, value, flags),
                        "cuStreamWriteValue32");
}

Status Stream::write_value64(CUdeviceptr address, std::uint64_t value, unsigned int flags) const {
  return driver().check(driver()->cuStreamWriteValue64(handle(), address, value, flags),
                        "cuStreamWriteValue64");
}

}  // namespace firebreak::cuda
