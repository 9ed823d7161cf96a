// SPDX-License-Identifier: Apache-2.0
/// What the agent pays before each answer to write down what it knows, by the number of tenants that have
/// changed since; each has as many allocations as a large model has tensors.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "agent/keepsakes.h"

namespace firebreak::agent {
namespace {

constexpr std::size_t tenant_count = 16;
constexpr std::size_t allocation_count = 400;

std::vector<KeptTenant> some_tenants() {
  std::vector<KeptTenant> tenants(tenant_count);
  for (std::size_t i = 0; i < tenant_count; ++i) {
    tenants[i].name = fmt::format("tenant-{}", i);
    tenants[i].active = {static_cast<pid_t>(1000 + i), "1234567", "a", {25, 1024}};
    for (std::size_t k = 0; k < allocation_count; ++k) {
      tenants[i].allocations.push_back(
          {fmt::format("layers.{}.attention.weight", k), 0x500000000000 + k, 4096, abi::Memory::Weights});
    }
  }
  return tenants;
}

void kept_text(benchmark::State& state) {
  std::vector<KeptTenant> tenants = some_tenants();
  const auto changed = static_cast<std::size_t>(state.range(0));
  KeptText text;
  text.update(tenants);
  for ([[maybe_unused]] auto _ : state) {
    for (std::size_t i = 0; i < changed; ++i) ++tenants[i].pair.epoch;
    benchmark::DoNotOptimize(text.update(tenants));
  }
}
BENCHMARK(kept_text)->ArgName("changed")->Arg(0)->Arg(1)->Arg(16)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace firebreak::agent

BENCHMARK_MAIN();
