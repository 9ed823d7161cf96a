// SPDX-License-Identifier: Apache-2.0
/// Measures what the guard costs where nobody strays: the same work with and without it, in turns, and the
/// ratio of the medians; and with a guard that counts no launches. FIREBREAK_BENCH_SCALE makes the work
/// larger (a real GPU wants 1024).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "gpu/either_gpu.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"

namespace firebreak::bench {
namespace {

constexpr int turns = 11;

enum class Guard { None, WithoutMarkers, Whole };

Result<double> run_load(const std::string& what, Guard guard) {
  os::RealKernel kernel;
  os::SpawnRequest request;
  const std::string scale = os::environment_variable("FIREBREAK_BENCH_SCALE").value_or("8");
  request.command = {std::string(FIREBREAK_PROGRAMS) + "/guard_load", what, scale};
  const auto platform = gpu::choose_either();
  if (!platform) return propagate(platform);
  request.environment = platform->environment;
  if (guard == Guard::WithoutMarkers) request.environment.emplace_back("FIREBREAK_GUARD_MARKERS", "0");
  if (guard != Guard::None) {
    auto preload = platform::guard_preload();
    if (!preload) return propagate(preload);
    for (auto& variable : *preload) request.environment.push_back(std::move(variable));
  }
  const auto result = os::run_program(kernel, request, "", Milliseconds(60'000));
  if (!result) return propagate(result);
  if (!result->status.clean()) return fail(ErrorCode::Device, result->output);
  return std::strtod(result->output.c_str(), nullptr);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void with_and_without(benchmark::State& state, const char* what) {
  for (auto _ : state) {
    std::map<Guard, std::vector<double>> all_ms;
    for (int turn = 0; turn < turns; ++turn) {
      for (const Guard guard : {Guard::None, Guard::WithoutMarkers, Guard::Whole}) {
        const auto ms = run_load(what, guard);
        if (!ms) return state.SkipWithError(to_string(ms.error()).c_str());
        all_ms[guard].push_back(*ms);
      }
    }
    state.counters["without_ms"] = median(all_ms[Guard::None]);
    state.counters["without_markers_ms"] = median(all_ms[Guard::WithoutMarkers]);
    state.counters["with_ms"] = median(all_ms[Guard::Whole]);
    state.counters["ratio"] = median(all_ms[Guard::Whole]) / median(all_ms[Guard::None]);
  }
}

BENCHMARK_CAPTURE(with_and_without, start, "start")->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(with_and_without, multiply, "multiply")->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(with_and_without, copy, "copy")->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(with_and_without, launch, "launch")->Iterations(1)->Unit(benchmark::kSecond);
// A million calls, so that milliseconds are nanoseconds of one.
BENCHMARK_CAPTURE(with_and_without, call, "call")->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace firebreak::bench

BENCHMARK_MAIN();
