// SPDX-License-Identifier: Apache-2.0
#include "cuda/first_gpu.h"

namespace firebreak::cuda {

Result<FirstGpu> FirstGpu::open(const std::string& library) {
  auto driver = Driver::open(library);
  if (!driver) return propagate(driver);
  const auto device = Device::get(**driver, 0);
  if (!device) return propagate(device);
  auto context = Context::create(*device);
  if (!context) return propagate(context);
  return FirstGpu(std::move(*driver), std::move(*context));
}

}  // namespace firebreak::cuda
