// SPDX-License-Identifier: Apache-2.0
#include "inject/kernel_fault.h"

#include <array>
#include <utility>

#include "cuda/device_buffer.h"
#include "cuda/module.h"
#include "cuda/stream.h"
#include "inject/report.h"

namespace firebreak::inject {
namespace {

constexpr std::size_t sink_bytes = 4096;

class KernelInjection final : public Injection {
 public:
  KernelInjection(KernelFault fault, cuda::Module module, cuda::Function function, cuda::DeviceBuffer sink,
                  cuda::Stream stream)
      : fault_(std::move(fault)),
        module_(std::move(module)),
        function_(function),
        sink_(std::move(sink)),
        stream_(std::move(stream)) {}

  Report raise() override {
    CUdeviceptr target = fault_.target;
    CUdeviceptr sink = sink_.address();
    std::array<void*, 2> arguments{&target, &sink};
    cuda::LaunchShape shape;
    shape.block.x = fault_.threads;
    shape.shared_bytes = fault_.shared_bytes;
    const std::int64_t launched_at_ns = now_ns();
    const CUresult queued = function_.launch_packed(stream_.handle(), shape, arguments);
    return wait_and_report(stream_, launched_at_ns, queued);
  }

 private:
  KernelFault fault_;
  cuda::Module module_;
  cuda::Function function_;
  cuda::DeviceBuffer sink_;
  cuda::Stream stream_;
};

}  // namespace

Result<std::unique_ptr<Injection>> prepare_kernel(const cuda::Driver& driver, KernelFault fault) {
  auto module = cuda::Module::load_ptx(driver, fault.ptx);
  if (!module) return propagate(module, fault.kernel);
  auto function = module->function(fault.kernel);
  if (!function) return propagate(function);
  auto sink = cuda::DeviceBuffer::allocate(driver, sink_bytes);
  if (!sink) return propagate(sink);
  auto stream = cuda::Stream::create(driver);
  if (!stream) return propagate(stream);
  return std::make_unique<KernelInjection>(std::move(fault), std::move(*module), *function, std::move(*sink),
                                           std::move(*stream));
}

}  // namespace firebreak::inject
