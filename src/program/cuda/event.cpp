// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/event.h"

namespace firebreak::cuda {

Result<Event> Event::create(const Driver& driver, unsigned int flags) {
  CUevent event = nullptr;
  const auto status = driver.check(driver->cuEventCreate(&event, flags), "cuEventCreate");
  if (!status) return propagate(status);
  return Event(driver, event);
}

Status Event::record(CUstream stream) const {
  const Driver& driver = event_.driver();
  return driver.check(driver->cuEventRecord(handle(), stream), "cuEventRecord");
}

Result<bool> Event::done() const {
  const Driver& driver = event_.driver();
  const CUresult result = driver->cuEventQuery(handle());
  if (result == CUDA_ERROR_NOT_READY) return false;
  const auto status = driver.check(result, "cuEventQuery");
  if (!status) return propagate(status);
  return true;
}

Status Event::synchronize() const {
  const Driver& driver = event_.driver();
  return driver.check(driver->cuEventSynchronize(handle()), "cuEventSynchronize");
}

Result<float> Event::elapsed_ms_since(const Event& earlier) const {
  const Driver& driver = event_.driver();
  float elapsed_ms = 0;
  const auto status =
      driver.check(driver->cuEventElapsedTime(&elapsed_ms, earlier.handle(), handle()), "cuEventElapsedTime");
  if (!status) return propagate(status);
  return elapsed_ms;
}

}  // namespace firebreak::cuda
