// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/gpu.h"

namespace firebreak::workloads {

Result<Gpu> Gpu::open(std::string_view ptx, const std::string& library) {
  auto driver = cuda::Driver::open(library);
  if (!driver) return propagate(driver);
  const auto device = cuda::Device::get(**driver, 0);
  if (!device) return propagate(device);
  auto context = cuda::Context::create(*device);
  if (!context) return propagate(context);
  // No kernel of ours has a stack, and the driver sets aside a quarter of a gibibyte for the default one.
  if (const Status limited = context->view().set_limit(CU_LIMIT_STACK_SIZE, 0); !limited)
    return propagate(limited);
  auto stream = cuda::Stream::create(**driver);
  if (!stream) return propagate(stream);
  auto module = cuda::Module::load_ptx(**driver, ptx);
  if (!module) return propagate(module);
  return Gpu(std::move(*driver), std::move(*context), std::move(*stream), std::move(*module));
}

}  // namespace firebreak::workloads
