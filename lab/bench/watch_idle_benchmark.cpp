// SPDX-License-Identifier: Apache-2.0
/// Measures what `firebreak watch --all` costs while nothing happens: CPU time of its process in percent of
/// one core, beside eight tenants of two MPS domains on the software GPU. The stand-ins for device nodes are
/// part of it there: one thread each for the kernel log and for each tenant's UVM queue, which a real driver
/// does not need.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "agent/domains/mps/domain.h"
#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "stage/stage.h"

namespace firebreak::bench {
namespace {

constexpr int tenants = 8;
constexpr Milliseconds patience{60'000};
/// New tenants are looked at more often than old ones, so the cost falls until all are old.
constexpr Milliseconds settling{8'000};
constexpr Milliseconds measured{10'000};

using Environment = std::vector<std::pair<std::string, std::string>>;

/// CPU time of all threads of a process.
Result<Nanoseconds> cpu_time_of(os::Kernel& kernel, pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const auto threads = kernel.list_directory(tasks);
  if (!threads) return propagate(threads);
  Nanoseconds sum{0};
  for (const std::string& thread : *threads) {
    const auto text = kernel.read_file(tasks + "/" + thread + "/schedstat");
    if (!text) return propagate(text);
    std::int64_t ns = 0;
    std::from_chars(text->data(), text->data() + text->size(), ns);
    sum += Nanoseconds(ns);
  }
  return sum;
}

/// The tenants, the others, and the watch.
class Scene {
 public:
  static Result<std::unique_ptr<Scene>> create() {
    auto directory = os::TemporaryDirectory::create();
    if (!directory) return propagate(directory);
    std::unique_ptr<Scene> scene(new Scene(std::move(*directory)));
    auto stage = stage::Stage::create(scene->kernel_, scene->clock_);
    if (!stage) return propagate(stage);
    scene->stage_ = std::move(*stage);
    return scene;
  }
  ~Scene() { stage_.reset(); }

  Status start_tenants(int count, const std::string& pace_ms) {
    for (const char* name : {"a", "b"}) {
      mps::DomainOptions options;
      options.name = name;
      options.directory = directory_.path() + "/" + name;
      options.control_program = std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu/nvidia-cuda-mps-control";
      options.environment = environment_;
      auto domain = mps::Domain::start(kernel_, options);
      if (!domain) return propagate(domain);
      domains_.push_back(std::move(*domain));
    }
    for (int i = 0; i < count; ++i) {
      Environment environment = environment_;
      const auto client = domains_[static_cast<std::size_t>(i) % domains_.size()]->client_environment();
      environment.insert(environment.end(), client.begin(), client.end());
      const std::vector<std::string> command = {program("firebreak-lab"), "victim", "--pace-ms", pace_ms};
      auto entered = stage_->enter({"tenant", "", command, environment}, [this](const std::string& line) {
        ready_ += line.starts_with("ready") ? 1 : 0;
      });
      if (!entered) return propagate(entered);
    }
    return stage_->wait("the tenants", patience, [&] { return ready_ == count; });
  }

  Status start_others(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      auto entered = stage_->enter({"other", "", {"sleep", "1000"}, {}});
      if (!entered) return propagate(entered);
    }
    return {};
  }

  Result<pid_t> start_watch() {
    int followed = 0;
    const std::vector<std::string> command = {program("firebreak"), "watch", "--all", "--json"};
    auto entered = stage_->enter({"watch", "", command, environment_}, [&followed](const std::string& line) {
      followed += line.find(R"("event":"process")") != std::string::npos ? 1 : 0;
    });
    if (!entered) return propagate(entered);
    if (Status all = stage_->wait("the watch", patience, [&] { return followed == ready_; }); !all)
      return propagate(all);
    pass(settling);
    return (*entered)->record().pid;
  }

  /// Measures percent of one core.
  Result<double> measure(pid_t pid) {
    const Monotonic begin = clock_.now();
    const auto before = cpu_time_of(kernel_, pid);
    if (!before) return propagate(before);
    pass(measured);
    const auto after = cpu_time_of(kernel_, pid);
    if (!after) return propagate(after);
    return 100.0 * to_ms(*after - *before) / to_ms(clock_.now() - begin);
  }

 private:
  explicit Scene(os::TemporaryDirectory directory)
      : directory_(std::move(directory)),
        environment_{{"FIREBREAK_GPU", "soft"}, {"FIREBREAK_SOFTGPU_DIR", directory_.path() + "/gpu"}} {}

  static std::string program(const std::string& name) { return std::string(FIREBREAK_PROGRAMS) + "/" + name; }
  /// Serves for a while.
  void pass(Milliseconds time) {
    (void)stage_->wait("time", time, [] { return false; });
  }

  os::RealKernel kernel_;
  SystemClock clock_;
  os::TemporaryDirectory directory_;
  Environment environment_;
  std::vector<std::unique_ptr<mps::Domain>> domains_;
  int ready_ = 0;
  std::unique_ptr<stage::Stage> stage_;
};

Result<double> cost(int count, const std::string& pace_ms, std::int64_t others) {
  auto scene = Scene::create();
  if (!scene) return propagate(scene);
  if (Status up = (*scene)->start_tenants(count, pace_ms); !up) return propagate(up);
  if (Status up = (*scene)->start_others(others); !up) return propagate(up);
  auto watch = (*scene)->start_watch();
  if (!watch) return propagate(watch);
  return (*scene)->measure(*watch);
}

void idle_watch(benchmark::State& state, int count, const std::string& pace_ms) {
  for ([[maybe_unused]] auto _ : state) {
    const auto percent = cost(count, pace_ms, state.range(0));
    if (!percent) {
      state.SkipWithError(to_string(percent.error()).c_str());
      return;
    }
    state.counters["percent_of_a_core"] = *percent;
    state.SetIterationTime(std::chrono::duration<double>(measured).count());
  }
}

// The argument: processes that have nothing to do with the GPU, besides those of the machine.
BENCHMARK_CAPTURE(idle_watch, nobody, 0, "0")->Arg(0)->Iterations(1)->UseManualTime();
BENCHMARK_CAPTURE(idle_watch, tenants_idle, tenants, "3600000")
    ->Arg(0)
    ->Arg(200)
    ->Iterations(1)
    ->UseManualTime();
BENCHMARK_CAPTURE(idle_watch, tenants_working, tenants, "20")->Arg(0)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace firebreak::bench

BENCHMARK_MAIN();
