// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/gpu.h"

namespace firebreak::workloads {

Result<Gpu> Gpu::open(std::string_view ptx, const std::string& library) {
  return load(cuda::FirstGpu::open(library), ptx);
}

Result<Gpu> Gpu::open_primary(std::string_view ptx, const std::string& library) {
  return load(cuda::FirstGpu::open_primary(library), ptx);
}

Result<Gpu> Gpu::open_small(std::string_view ptx, unsigned int multiprocessors, const std::string& library) {
  return load(cuda::FirstGpu::open_small(multiprocessors, library), ptx);
}

Result<Gpu> Gpu::load(Result<cuda::FirstGpu> gpu, std::string_view ptx) {
  if (!gpu) return propagate(gpu);
  // Our kernels have no stack, and the driver sets aside a quarter of a gibibyte for the default one.
  if (const Status limited = gpu->context().set_limit(CU_LIMIT_STACK_SIZE, 0); !limited)
    return propagate(limited);
  auto stream = cuda::Stream::create(gpu->driver());
  if (!stream) return propagate(stream);
  auto module = cuda::Module::load_ptx(gpu->driver(), ptx);
  if (!module) return propagate(module);
  return Gpu(std::move(*gpu), std::move(*stream), std::move(*module));
}

}  // namespace firebreak::workloads
