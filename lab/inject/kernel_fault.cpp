// SPDX-License-Identifier: Apache-2.0
#include "inject/kernel_fault.h"

#include <array>
#include <utility>

#include "inject/report.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/stream.h"

namespace firebreak::inject {
namespace {

constexpr std::size_t sink_bytes = 4096;

class KernelInjection final : public Injection {
 public:
  KernelInjection(const Kernel& kernel, Target target, cuda::Module module, cuda::Function function,
                  cuda::DeviceBuffer sink, cuda::Stream stream)
      : kernel_(kernel),
        target_(std::move(target)),
        module_(std::move(module)),
        function_(function),
        sink_(std::move(sink)),
        stream_(std::move(stream)) {}

  RaisedFault raise() override {
    CUdeviceptr target = target_.address;
    CUdeviceptr sink = sink_.address();
    std::array<void*, 2> arguments{&target, &sink};
    cuda::LaunchShape shape;
    shape.block.x = kernel_.threads;
    shape.shared_bytes = kernel_.shared_bytes;
    const std::int64_t launched_at_ns = now_ns();
    const CUresult queued = function_.launch_packed(stream_.handle(), shape, arguments);
    return wait_and_report(stream_, launched_at_ns, queued);
  }

 private:
  const Kernel& kernel_;
  Target target_;
  cuda::Module module_;
  cuda::Function function_;
  cuda::DeviceBuffer sink_;
  cuda::Stream stream_;
};

}  // namespace

Prepared prepare_kernel(const cuda::ContextView& context, const Options& options, const Kernel& kernel,
                        FindTarget find_target) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  auto module = cuda::Module::load_ptx(context.driver(), kernel.ptx);
  if (!module) return propagate(module, kernel.name);
  return prepare_loaded(context, options, kernel, std::move(*module), find_target);
}

Prepared prepare_loaded(const cuda::ContextView& context, const Options& options, const Kernel& kernel,
                        cuda::Module module, FindTarget find_target) {
  const cuda::Driver& driver = context.driver();
  auto function = module.function(kernel.name);
  if (!function) return propagate(function);
  auto sink = cuda::DeviceBuffer::allocate(driver, sink_bytes);
  if (!sink) return propagate(sink);
  auto stream = cuda::Stream::create(driver);
  if (!stream) return propagate(stream);
  // Last, so that nothing else is allocated where a target was just freed.
  auto target = find_target(context, options);
  if (!target) return propagate(target);
  return std::make_unique<KernelInjection>(kernel, std::move(*target), std::move(module), *function,
                                           std::move(*sink), std::move(*stream));
}

}  // namespace firebreak::inject
