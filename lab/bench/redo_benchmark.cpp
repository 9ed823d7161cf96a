// SPDX-License-Identifier: Apache-2.0
/// Measures what it costs to note a launch in a redo ring, and to decide after a fault what has to be done
/// again.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "program/redo/redo_decision.h"
#include "program/redo/ring_reader.h"
#include "program/redo/ring_writer.h"

namespace firebreak {
namespace {

constexpr std::size_t ring_bytes = std::size_t{1} << 20;

struct Ring {
  Ring() : memory(sizeof(abi::RedoRing) + ring_bytes), writer(*redo::RingWriter::make(memory.bytes())) {}

  redo::RingMemory memory;
  redo::RingWriter writer;
};

Ring& shared_ring() {
  static Ring ring;
  return ring;
}

void note_launch(benchmark::State& state) {
  const std::vector<std::byte> parameters(static_cast<std::size_t>(state.range(0)));
  abi::RedoLaunch launch{};
  launch.grid[0] = 1024;
  launch.block[0] = 256;
  for (auto _ : state) {
    ++launch.kernel;
    shared_ring().writer.launch(1, launch, parameters);
  }
  state.SetLabel("time of one launch");
}
BENCHMARK(note_launch)->Arg(40)->Arg(104)->Arg(232)->Arg(1'000)->Arg(4'000);
BENCHMARK(note_launch)->Arg(104)->Threads(2)->UseRealTime();

/// A ring as full as it gets, of which one region is in flight.
void decide(benchmark::State& state) {
  Ring ring;
  const std::vector<std::byte> parameters(104);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < ring_bytes / 192; ++i) {
    if (i % 200 == 0) ring.writer.start_region(1, {0, 0, ++number});
    ring.writer.launch(1, {}, parameters);
  }
  ring.writer.completed(0) = number;
  const auto log = redo::read_ring(ring.memory.bytes());
  if (!log || decide(*log).answer != redo::RedoAnswer::Redo) return state.SkipWithError("no decision");
  std::vector<double> times_us;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    if (state.range(0) != 0) {
      benchmark::DoNotOptimize(redo::read_ring(ring.memory.bytes())->entries.size());
    } else {
      benchmark::DoNotOptimize(decide(*log).first);
    }
    times_us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times_us.begin(), times_us.end());
  state.counters["entries"] = static_cast<double>(log->entries.size());
  state.counters["p50_us"] = times_us[times_us.size() / 2];
  state.counters["largest_us"] = times_us.back();
  state.SetLabel(state.range(0) != 0 ? "reading the ring" : "deciding");
}
BENCHMARK(decide)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace firebreak

BENCHMARK_MAIN();
