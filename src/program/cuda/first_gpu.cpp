// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/first_gpu.h"

namespace firebreak::cuda {

template <class MakeContext>
Result<FirstGpu> FirstGpu::open_with(const std::string& library, MakeContext make_context) {
  auto driver = Driver::open(library);
  if (!driver) return propagate(driver);
  const auto device = Device::get(**driver, 0);
  if (!device) return propagate(device);
  Result<SmallContext> context = make_context(*device);
  if (!context) return propagate(context);
  return FirstGpu(std::move(*driver), std::move(*context));
}

Result<FirstGpu> FirstGpu::open(const std::string& library) {
  return open_with(library, [](const Device& device) -> Result<SmallContext> {
    auto context = Context::create(device);
    if (!context) return propagate(context);
    return SmallContext{std::move(*context), false};
  });
}

Result<FirstGpu> FirstGpu::open_primary(const std::string& library) {
  return open_with(library, [](const Device& device) -> Result<SmallContext> {
    auto context = Context::retain_primary(device);
    if (!context) return propagate(context);
    if (const Status current = context->view().make_current(); !current) return propagate(current);
    return SmallContext{std::move(*context), false};
  });
}

Result<FirstGpu> FirstGpu::open_small(unsigned int multiprocessors, const std::string& library) {
  return open_with(library, [multiprocessors](const Device& device) {
    return create_small_context(device, multiprocessors);
  });
}

}  // namespace firebreak::cuda
