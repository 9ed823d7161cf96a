// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/context.h"

namespace firebreak::cuda {

Result<ContextView> ContextView::current(const Driver& driver) {
  CUcontext context = nullptr;
  const auto status = driver.check(driver->cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  if (!status) return propagate(status);
  if (context == nullptr) return fail(ErrorCode::NotFound, "this thread has no current CUDA context");
  return ContextView(driver, context);
}

Status ContextView::make_current() const {
  return driver_->check((*driver_)->cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

Result<Device> ContextView::device() const {
  CUdevice device = CU_DEVICE_INVALID;
  const auto status = driver_->check((*driver_)->cuCtxGetDevice(&device), "cuCtxGetDevice");
  if (!status) return propagate(status);
  return Device(*driver_, device);
}

Status ContextView::synchronize() const {
  return driver_->check((*driver_)->cuCtxSynchronize(), "cuCtxSynchronize");
}

Status ContextView::set_limit(CUlimit limit, std::size_t value) const {
  return driver_->check((*driver_)->cuCtxSetLimit(limit, value), "cuCtxSetLimit");
}

Result<std::size_t> ContextView::limit(CUlimit limit) const {
  std::size_t value = 0;
  const auto status = driver_->check((*driver_)->cuCtxGetLimit(&value, limit), "cuCtxGetLimit");
  if (!status) return propagate(status);
  return value;
}

Result<Context> Context::create(const Device& device, const ContextOptions& options) {
  const Driver& driver = device.driver();
  CUexecAffinityParam affinity{};
  affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
  affinity.param.smCount.val = options.multiprocessors.value_or(0);
  CUexecAffinityParam* params = options.multiprocessors ? &affinity : nullptr;
  const int param_count = options.multiprocessors ? 1 : 0;

  CUcontext context = nullptr;
  const auto status = driver.check(
      driver->cuCtxCreate(&context, params, param_count, options.flags, device.handle()), "cuCtxCreate");
  if (!status) return propagate(status);
  return Context(driver, Handle{context, std::nullopt});
}

Result<Context> Context::retain_primary(const Device& device) {
  const Driver& driver = device.driver();
  CUcontext context = nullptr;
  const auto status =
      driver.check(driver->cuDevicePrimaryCtxRetain(&context, device.handle()), "cuDevicePrimaryCtxRetain");
  if (!status) return propagate(status);
  Context retained(driver, Handle{context, device.handle()});
  const auto current = retained.view().make_current();
  if (!current) return propagate(current);
  return retained;
}

void Context::Destroy::operator()(const Driver& driver, const Handle& handle) const {
  if (handle.primary_of) {
    driver->cuDevicePrimaryCtxRelease(*handle.primary_of);
  } else {
    driver->cuCtxDestroy(handle.context);
  }
}

}  // namespace firebreak::cuda
