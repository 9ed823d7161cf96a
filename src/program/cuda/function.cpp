// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/function.h"

namespace firebreak::cuda {

Result<int> Function::attribute(CUfunction_attribute attribute) const {
  int value = 0;
  const auto status =
      driver_->check((*driver_)->cuFuncGetAttribute(&value, attribute, function_), "cuFuncGetAttribute");
  if (!status) return propagate(status);
  return value;
}

Status Function::set_attribute(CUfunction_attribute attribute, int value) const {
  return driver_->check((*driver_)->cuFuncSetAttribute(function_, attribute, value), "cuFuncSetAttribute");
}

CUresult Function::launch_packed(CUstream stream, const LaunchShape& shape,
                                 std::span<void*> arguments) const {
  return (*driver_)->cuLaunchKernel(function_, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x,
                                    shape.block.y, shape.block.z, shape.shared_bytes, stream,
                                    arguments.data(), nullptr);
}

}  // namespace firebreak::cuda
