// SPDX-License-Identifier: Apache-2.0
/// Whether spare driver instances work with this driver (docs/how/spare.md), in MPS domains that nobody else
/// is in: a program of ours moves to its second instance, and moves back once a fault of ours has ended the
/// domain that it works in. Three processes: who starts the domains, that program, and who faults.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "agent/domains/mps/domain.h"
#include "commands/cli/commands.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/program.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "shared/abi/spare_page.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::cli {
namespace {

using guard::ProbeResult;

constexpr Milliseconds program_limit{20'000};
constexpr Milliseconds part_limit{16'000};  // of a spare that comes up, and of a move
constexpr Milliseconds fault_limit{8'000};
constexpr std::uint32_t threads = 256, blocks = 16, words = threads * blocks;
constexpr std::uint32_t factor = 1664525, summand = 1013904223;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry step(.param .u64 words)
{
  .reg .u64 %base, %offset;
  .reg .u32 %thread, %block, %size, %word;
  ld.param.u64 %base, [words];
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mad.lo.u32 %thread, %block, %size, %thread;
  mul.wide.u32 %offset, %thread, 4;
  add.u64 %base, %base, %offset;
  ld.global.u32 %word, [%base];
  mad.lo.u32 %word, %word, 1664525, 1013904223;
  st.global.u32 [%base], %word;
  ret;
}

.visible .entry fault()
{
  trap;
  ret;
}
)";

ProbeResult untested(const std::string& reason) { return {ProbeResult::Answer::Untested, reason}; }
ProbeResult fails(const std::string& reason) { return {ProbeResult::Answer::Fails, reason}; }

/// Ours, as the agent finds it.
Result<os::Mapping> own_page() {
  std::error_code ignored;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string target = std::filesystem::read_symlink(each, ignored).string();
    if (target.find(abi::spare_page_name) == std::string::npos) continue;
    return os::Mapping::of_file(std::stoi(each.path().filename().string()), os::page_size(),
                                os::Protection::ReadWrite);
  }
  return fail(ErrorCode::NotFound, "the preload library has made no page");
}

template <class Condition>
bool wait_until(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + part_limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(Milliseconds(2));
  }
  return true;
}

/// It computes on words of which it knows what they have to be.
class Program {
 public:
  static Result<std::unique_ptr<Program>> start(const std::string& cuda_library) {
    auto gpu = cuda::FirstGpu::open_primary(cuda_library);
    if (!gpu) return propagate(gpu);
    auto program = std::unique_ptr<Program>(new Program(std::move(*gpu)));
    auto module = cuda::Module::load_ptx(program->driver(), ptx);
    if (!module) return propagate(module);
    program->module_.emplace(std::move(*module));
    auto step = program->module_->function("step");
    if (!step) return propagate(step);
    program->step_.emplace(std::move(*step));
    auto memory = cuda::DeviceBuffer::allocate(program->driver(), words * sizeof(std::uint32_t));
    if (!memory) return propagate(memory);
    program->memory_.emplace(std::move(*memory));
    const CUresult filled = program->driver()->cuMemsetD8(program->memory_->address(), 0, words * 4);
    if (auto good = program->driver().check(filled, "cuMemsetD8"); !good) return propagate(good);
    auto page = own_page();
    if (!page) return propagate(page);
    program->page_ = std::move(*page);
    return program;
  }

  abi::SparePage& page() { return *reinterpret_cast<abi::SparePage*>(page_.data()); }

  /// One step, and a look at all words.
  Status step() {
    const auto queued = step_->launch(nullptr, {{blocks, 1, 1}, {threads, 1, 1}}, memory_->address());
    if (!queued) return queued;
    std::vector<std::uint32_t> seen(words);
    const CUresult copied = driver()->cuMemcpyDtoH(seen.data(), memory_->address(), words * 4);
    if (auto good = driver().check(copied, "cuMemcpyDtoH"); !good) return good;
    expected_ = expected_ * factor + summand;
    const auto wrong = std::ranges::count_if(seen, [this](std::uint32_t word) { return word != expected_; });
    if (wrong == 0) return {};
    return fail(ErrorCode::Internal, fmt::format("{} of {} words are wrong", wrong, words));
  }

  /// It may need long where the machine is busy, so nothing is known where there is none in time.
  bool has_spare() {
    return wait_until([this] { return page().state.load() == abi::SpareState::Protected; });
  }

  bool leave() {
    page().asked_to_leave.fetch_add(1);
    page().wake.fetch_add(1);
    os::futex_wake(page().wake);
    return wait_until([this] { return page().answered.load() == page().asked_to_leave.load(); });
  }

 private:
  explicit Program(cuda::FirstGpu gpu) : gpu_(std::move(gpu)) {}
  const cuda::Driver& driver() const { return gpu_.driver(); }

  cuda::FirstGpu gpu_;
  std::optional<cuda::Module> module_;
  std::optional<cuda::Function> step_;
  std::optional<cuda::DeviceBuffer> memory_;
  os::Mapping page_;
  std::uint32_t expected_ = 0;
};

/// By a client of that domain alone.
Status fault_in(os::Kernel& kernel, const std::string& pipe_directory) {
  const auto program = os::executable_path();
  if (!program) return propagate(program);
  os::SpawnRequest request;
  request.command = {*program, "spare-probe", "--fault"};
  request.environment = {
      {"CUDA_MPS_PIPE_DIRECTORY", pipe_directory}, {"LD_PRELOAD", ""}, {abi::spare_variable, ""}};
  const auto ran = os::run_program(kernel, std::move(request), "", fault_limit);
  if (!ran) return propagate(ran);
  if (ran->status.signal == 0 && ran->status.exit_code == 0) return {};
  return fail(ErrorCode::Internal, "no fault could be raised: " + ran->output);
}

/// The result, of who has a spare and is in these domains.
ProbeResult move_there_and_back(const platform::Platform& platform) {
  auto started = Program::start(platform.cuda_library);
  if (!started) return fails("a program with a spare: " + started.error().message);
  Program& program = **started;
  if (const Status first = program.step(); !first) return fails("before a move: " + first.error().message);
  if (!program.has_spare())
    return untested(fmt::format("no spare in time: {}", program.page().reason.data()));
  if (!program.leave()) return untested("a move was not answered in time");
  if (program.page().flips.load() != 1)
    return fails(fmt::format("no move: {}", program.page().reason.data()));
  if (const Status moved = program.step(); !moved) return fails("after a move: " + moved.error().message);
  if (!program.has_spare())
    return untested(fmt::format("no spare in time: {}", program.page().reason.data()));
  if (const Status fault = fault_in(*platform.kernel, program.page().active_domain.data()); !fault)
    return untested(fault.error().message);
  if (!program.leave()) return untested("a move after a fault was not answered in time");
  if (const Status moved = program.step(); !moved) return fails("after a fault: " + moved.error().message);
  if (program.page().flips.load() != 2) return fails("a fault did not end its domain, or nobody left that");
  return {ProbeResult::Answer::Works, ""};
}

/// Without anything of ours.
ProbeResult come_alone(const platform::Platform& platform) {
  const auto gpu = cuda::FirstGpu::open_primary(platform.cuda_library);
  return gpu ? ProbeResult{ProbeResult::Answer::Works, ""} : untested(gpu.error().message);
}

/// Ends with its domain.
int raise_fault(const platform::Platform& platform) {
  const auto gpu = cuda::FirstGpu::open_primary(platform.cuda_library);
  if (!gpu) return 1;
  const auto module = cuda::Module::load_ptx(gpu->driver(), ptx);
  if (!module) return 1;
  const auto fault = module->function("fault");
  if (!fault || !fault->launch(nullptr, {})) return 1;
  const CUresult result = gpu->driver()->cuCtxSynchronize();
  fmt::print("{}\n", gpu->driver().error_name(result));
  return result == CUDA_SUCCESS ? 1 : 0;
}

/// Three MPS domains for as long as they live: two to work in, and the anchors'.
class Domains {
 public:
  static Result<std::unique_ptr<Domains>> start(const platform::Platform& platform,
                                                const std::string& folder) {
    auto all = std::unique_ptr<Domains>(new Domains);
    for (const char* const name : {"a", "b", "anchor"}) {
      mps::DomainOptions options;
      options.name = name;
      options.directory = folder + "/" + name;
      options.control_program = platform.control_program;
      options.environment = platform.environment;
      auto domain = mps::Domain::start(*platform.kernel, std::move(options));
      if (!domain) return propagate(domain);
      all->domains_.push_back(std::move(*domain));
    }
    return all;
  }
  ~Domains() {
    for (const auto& each : domains_) (void)each->quit(Milliseconds(3'000));
  }

  const std::string& pipe_directory(std::size_t number) const { return domains_[number]->pipe_directory(); }

 private:
  Domains() = default;
  std::vector<std::unique_ptr<mps::Domain>> domains_;
};

/// Its exit status and its word are the program's own.
Result<os::ProgramResult> run_in_domains() {
  const auto folder = os::TemporaryDirectory::create();
  if (!folder) return propagate(folder);
  const auto platform = platform::choose(folder->path() + "/softgpu");
  if (!platform) return propagate(platform);
  const auto preload = platform::guard_preload();
  if (!preload) return propagate(preload);
  const auto domains = Domains::start(*platform, folder->path());
  if (!domains) return propagate(domains);
  const auto program = os::executable_path();
  if (!program) return propagate(program);
  os::SpawnRequest request;
  request.command = {*program, "spare-probe", "--alone"};
  request.environment = platform->environment;
  request.environment.emplace_back("CUDA_MPS_PIPE_DIRECTORY", (*domains)->pipe_directory(2));
  auto alone = os::run_program(*platform->kernel, request, "", program_limit);
  if (!alone || alone->status.signal != 0 || alone->status.exit_code != 0) return alone;
  request.command.back() = "--inside";
  request.environment.emplace_back(abi::spare_variable,
                                   (*domains)->pipe_directory(0) + ":" + (*domains)->pipe_directory(1));
  for (const auto& variable : *preload) request.environment.push_back(variable);
  request.environment.emplace_back("FIREBREAK_GUARD", "0");
  return os::run_program(*platform->kernel, std::move(request), "", program_limit);
}

int say(const ProbeResult& result) {
  fmt::print("{}\n", result.reason);
  return guard::exit_status_of(result);
}

enum class ProbePart { All, Alone, Inside, Fault };

int try_spares(ProbePart part) {
  if (part == ProbePart::All) {
    const auto ran = run_in_domains();
    if (!ran) return say(untested(ran.error().message));
    fmt::print("{}", ran->output);
    return ran->status.signal == 0 ? ran->status.exit_code : 1;
  }
  const auto platform = platform::choose();
  if (!platform) return say(untested(platform.error().message));
  if (part == ProbePart::Fault) return raise_fault(*platform);
  return say(part == ProbePart::Alone ? come_alone(*platform) : move_there_and_back(*platform));
}

}  // namespace

void add_spare_probe(CLI::App& app, Action& action) {
  // An empty group keeps it out of the help: it is for the agent.
  CLI::App* command =
      app.add_subcommand("spare-probe",
                         "Moves between two MPS domains of its own, one of which it ends by a fault")
          ->group("");
  const auto part = std::make_shared<ProbePart>(ProbePart::All);
  command->add_flag_callback(
      "--alone", [part] { *part = ProbePart::Alone; }, "Whether a program comes to the GPU");
  command->add_flag_callback(
      "--inside", [part] { *part = ProbePart::Inside; }, "The program that moves");
  command->add_flag_callback(
      "--fault", [part] { *part = ProbePart::Fault; }, "Who faults");
  command->callback([&action, part] { action = [part] { return try_spares(*part); }; });
}

}  // namespace firebreak::cli
