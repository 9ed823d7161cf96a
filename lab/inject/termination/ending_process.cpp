// SPDX-License-Identifier: Apache-2.0
#include "inject/termination/ending_process.h"

#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include "inject/report.h"
#include "program/cuda/module.h"
#include "program/cuda/pinned_buffer.h"
#include "program/cuda/stream.h"

namespace firebreak::inject {

namespace {

constexpr std::int64_t start_limit_ns = 10'000'000'000;

/// Two words that the kernel shares with the host.
class Words {
 public:
  static Result<Words> create(const cuda::Driver& driver) {
    auto memory = cuda::PinnedBuffer::allocate(driver, 2 * sizeof(std::uint32_t));
    if (!memory) return propagate(memory);
    return Words(std::move(*memory));
  }
  CUdeviceptr running_address() const { return memory_.device_address(); }
  CUdeviceptr stop_address() const { return memory_.device_address() + sizeof(std::uint32_t); }
  bool running() const { return word(0).load(std::memory_order_acquire) != 0; }
  void stop() const { word(1).store(1, std::memory_order_release); }

 private:
  explicit Words(cuda::PinnedBuffer memory) : memory_(std::move(memory)) {}
  std::atomic_ref<std::uint32_t> word(std::size_t index) const {
    return std::atomic_ref(reinterpret_cast<std::uint32_t*>(memory_.data())[index]);
  }

  cuda::PinnedBuffer memory_;
};

/// Launches as many blocks of as many threads as the GPU holds at a time, registers and shared memory aside.
Result<cuda::LaunchShape> whole_gpu(const cuda::ContextView& context) {
  const auto device = context.device();
  if (!device) return propagate(device);
  const auto block = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  const auto threads = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  const auto multiprocessors = device->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  if (!block) return propagate(block);
  if (!threads) return propagate(threads);
  if (!multiprocessors) return propagate(multiprocessors);
  cuda::LaunchShape shape;
  shape.block.x = static_cast<unsigned int>(*block);
  shape.grid.x = static_cast<unsigned int>(*threads / *block * *multiprocessors);
  return shape;
}

class EndingInjection final : public Injection {
 public:
  EndingInjection(std::function<void()> end, double end_after_share, const WorkShape& work,
                  cuda::LaunchShape shape, cuda::Module module, cuda::Function function, Words words,
                  cuda::Stream stream)
      : end_(std::move(end)),
        end_after_(std::chrono::duration_cast<std::chrono::nanoseconds>(work.limit * end_after_share)),
        work_(work),
        shape_(shape),
        module_(std::move(module)),
        function_(function),
        words_(std::move(words)),
        stream_(std::move(stream)) {}

  RaisedFault raise() override {
    CUdeviceptr running = words_.running_address();
    CUdeviceptr stop = work_.waits_for_host ? words_.stop_address() : 0;
    std::int64_t limit_ns = std::chrono::nanoseconds(work_.limit).count();
    std::array<void*, 3> arguments{&running, &stop, &limit_ns};
    const CUresult queued = function_.launch_packed(stream_.handle(), shape_, arguments);
    if (queued == CUDA_SUCCESS) wait_until_it_runs();
    std::this_thread::sleep_for(end_after_);
    const std::int64_t ended_at_ns = now_ns();
    if (queued == CUDA_SUCCESS) end_();
    words_.stop();
    return wait_and_report(stream_, ended_at_ns, queued);
  }

 private:
  void wait_until_it_runs() const {
    const std::int64_t until_ns = now_ns() + start_limit_ns;
    while (!words_.running() && now_ns() < until_ns) std::this_thread::yield();
  }

  std::function<void()> end_;
  std::chrono::nanoseconds end_after_;
  const WorkShape& work_;
  cuda::LaunchShape shape_;
  cuda::Module module_;
  cuda::Function function_;
  Words words_;
  cuda::Stream stream_;
};

}  // namespace

Prepared prepare_ending(const cuda::ContextView& context, const Options& options, const WorkShape& work,
                        Ending ending) {
  if (!options.end_process)
    return fail(ErrorCode::InvalidArgument, "this kind needs the caller's way to end its process");
  const auto current = context.make_current();
  if (!current) return propagate(current);
  const cuda::Driver& driver = context.driver();
  const auto shape = work.fills_gpu ? whole_gpu(context) : cuda::LaunchShape{};
  if (!shape) return propagate(shape);
  auto module = cuda::Module::load_ptx(driver, working_kernel_ptx);
  if (!module) return propagate(module);
  auto function = module->function("work_for_a_while");
  if (!function) return propagate(function);
  auto words = Words::create(driver);
  if (!words) return propagate(words);
  auto stream = cuda::Stream::create(driver);
  if (!stream) return propagate(stream);
  return std::make_unique<EndingInjection>([end = options.end_process, ending] { end(ending); },
                                           options.end_after_share, work, *shape, std::move(*module),
                                           *function, std::move(*words), std::move(*stream));
}

}  // namespace firebreak::inject
