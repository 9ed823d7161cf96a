// SPDX-License-Identifier: Apache-2.0
/// Measures what the agent pays before each answer to write down what it knows of a tenant with many
/// allocations: where nothing has changed since, where its state has, and where it has one allocation more.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "agent/tenants/kept_state.h"

namespace firebreak::agent {
namespace {

std::vector<vault::Entry> some_memory(std::size_t count) {
  std::vector<vault::Entry> entries(count);
  for (std::size_t k = 0; k < count; ++k) {
    entries[k].name = fmt::format("layers.{}.attention.weight", k);
    entries[k].address = 0x500000000000 + k;
    entries[k].size_bytes = 4096;
  }
  return entries;
}

enum class Change { None, State, Memory };

void kept_text(benchmark::State& state) {
  const auto what = static_cast<Change>(state.range(0));
  const std::vector<vault::Entry> entries = some_memory(vault::Vault::entries_max);
  const ClientConnections clients;
  KeptTenant tenant;
  tenant.name = "tenant";
  tenant.active = {1000, "1234567", "", "a", {25, 1024}};
  KeptDocument document = std::move(KeptDocument::create().value());
  KeptText text;
  std::size_t count = what == Change::Memory ? 0 : entries.size();
  text.update(tenant, std::span(entries).first(count), clients);
  for ([[maybe_unused]] auto _ : state) {
    if (what == Change::State) ++tenant.pair.epoch;
    if (what == Change::Memory && ++count > entries.size()) text = {}, count = 1;
    const auto now = text.update(tenant, std::span(entries).first(count), clients);
    if (now) benchmark::DoNotOptimize(document.write(*now));
  }
}
BENCHMARK(kept_text)
    ->ArgName("nothing_state_memory")
    ->Arg(static_cast<int>(Change::None))
    ->Arg(static_cast<int>(Change::State))
    ->Arg(static_cast<int>(Change::Memory))
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace firebreak::agent

BENCHMARK_MAIN();
