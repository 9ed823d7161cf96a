// SPDX-License-Identifier: Apache-2.0
/// A tenant that does nothing wrong: what `firebreak-lab characterize` starts to see what a fault does to
/// others.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cstdio>
#include <string_view>

#include "characterize/victim_log.h"
#include "commands/commands.h"
#include "gpu/either_gpu.h"
#include "ground/base/clock.h"
#include "ground/platform/platform.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace firebreak::commands {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry count_up(.param .u64 words)
{
  .reg .u64 %words, %offset;
  .reg .u32 %index, %value;
  ld.param.u64 %words, [words];
  mov.u32 %index, %tid.x;
  mul.wide.u32 %offset, %index, 4;
  add.u64 %words, %words, %offset;
  ld.u32 %value, [%words];
  add.u32 %value, %value, 1;
  st.u32 [%words], %value;
  ret;
}
)";

constexpr unsigned int threads = 32;
constexpr int victim_of_a_fault = 3;

struct Options {
  bool once = false;
  int pace_ms = 0;
};

std::int64_t now_ns() { return to_ns(SystemClock().now()); }

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Lines on standard input, without ever waiting longer than asked.
class Commands {
 public:
  explicit Commands(os::Kernel& kernel) : kernel_(kernel) {}
  ~Commands() { input_.release(); }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// The letters of what came within `wait`; "e" at the end of the input too.
  std::string_view heard(Milliseconds wait) {
    const int number = input_.get();
    const auto ready = kernel_.poll(std::span(&number, 1), wait);
    if (!ready || ready->empty()) return {};
    const auto count = kernel_.read(input_, std::as_writable_bytes(std::span(buffer_)));
    if (!count || *count == 0) return "end";
    return {buffer_.data(), *count};
  }

 private:
  os::Kernel& kernel_;
  os::Fd input_{0};
  std::array<char, 64> buffer_{};
};

/// One short kernel, over and over.
class Work {
 public:
  static Result<Work> prepare(const cuda::Driver& driver) {
    auto module = cuda::Module::load_ptx(driver, ptx);
    if (!module) return propagate(module);
    auto function = module->function("count_up");
    if (!function) return propagate(function);
    auto words = cuda::DeviceBuffer::allocate(driver, threads * sizeof(std::uint32_t));
    if (!words) return propagate(words);
    auto stream = cuda::Stream::create(driver);
    if (!stream) return propagate(stream);
    return Work(std::move(*module), *function, std::move(*words), std::move(*stream));
  }

  CUresult run_once() const {
    CUdeviceptr words = words_.address();
    std::array<void*, 1> arguments{&words};
    cuda::LaunchShape shape;
    shape.block.x = threads;
    const CUresult queued = function_.launch_packed(stream_.handle(), shape, arguments);
    return queued != CUDA_SUCCESS ? queued : stream_.driver()->cuStreamSynchronize(stream_.handle());
  }

 private:
  Work(cuda::Module module, cuda::Function function, cuda::DeviceBuffer words, cuda::Stream stream)
      : module_(std::move(module)),
        function_(function),
        words_(std::move(words)),
        stream_(std::move(stream)) {}

  cuda::Module module_;
  cuda::Function function_;
  cuda::DeviceBuffer words_;
  cuda::Stream stream_;
};

/// Works until it is told to end or the GPU fails it; "begin" starts the record anew.
int work_and_tell(const cuda::Driver& driver, const Work& work, os::Kernel& kernel, Milliseconds pace) {
  Commands commands(kernel);
  characterize::VictimLog log;
  log.begin(now_ns());
  for (bool on = true; on;) {
    const CUresult result = work.run_once();
    if (result != CUDA_SUCCESS) {
      log.failed(now_ns(), driver.error_name(result));
      break;
    }
    log.kernel_done(now_ns());
    const std::string_view heard = commands.heard(pace);
    if (heard.starts_with("begin")) {
      log.begin(now_ns());
      say("begun");
    }
    on = heard.find("end") == std::string_view::npos;
  }
  say(characterize::to_line(log.record()));
  return log.record().error.empty() ? 0 : victim_of_a_fault;
}

Result<int> be_a_victim(const Options& options) {
  auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const auto work = Work::prepare(gpu->driver());
  if (!work) return propagate(work);
  if (const auto first = gpu->driver().check(work->run_once(), "the first kernel"); !first)
    return propagate(first);
  say(fmt::format("ready {}", now_ns()));
  if (options.once) return 0;
  return work_and_tell(gpu->driver(), *work, *platform->kernel, Milliseconds(options.pace_ms));
}

}  // namespace

void add_victim(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  // An empty group keeps it out of the help: it is of use to `characterize` alone.
  CLI::App* command = app.add_subcommand("victim", "Short kernels, one after the other")->group("");
  command->add_flag("--once", options->once, "Only one");
  command->add_option("--pace-ms", options->pace_ms, "Between two kernels");
  command->callback([options, &action] {
    action = [options] {
      const auto status = be_a_victim(*options);
      return status ? *status : complain(to_string(status.error()));
    };
  });
}

}  // namespace firebreak::commands
