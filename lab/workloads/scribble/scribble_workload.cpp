// SPDX-License-Identifier: Apache-2.0
#include "workloads/scribble/scribble_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ground/base/clock.h"
#include "program/cuda/copy.h"
#include "workloads/common/counter_random.h"
#include "workloads/common/digest.h"

namespace firebreak::workloads::scribble {
namespace {

enum class Kernel { Exchange };

/// A successor keeps the other engines away from what it watches for so long: between a look and their write
/// a stray one could hide.
constexpr std::uint64_t watched_steps = 100;
/// Parts of a step's values: rounds are counted from its first.
constexpr std::uint64_t values_a_step = 1 << 16;
constexpr std::uint64_t copied_value = values_a_step - 1;

Result<Kernels> find_kernels(const cuda::Module& module) {
  return Kernels::find(module, std::array{"scribble_exchange"});
}

}  // namespace

ScribbleWorkload::ScribbleWorkload(Kernels kernels, const Preset& preset, std::uint64_t steps,
                                   std::uint64_t nonce)
    : kernels_(std::move(kernels)), preset_(preset), steps_(steps), nonce_(nonce) {
  state_.fingerprint = mix_bits(digest_of(preset) ^ mix_bits(steps));
}

Result<std::unique_ptr<Workload>> ScribbleWorkload::create(const Gpu& gpu, const Preset& preset,
                                                           std::uint64_t steps, std::uint64_t nonce) {
  auto kernels = find_kernels(gpu.module());
  if (!kernels) return propagate(kernels);
  return std::unique_ptr<Workload>(new ScribbleWorkload(std::move(*kernels), preset, steps, nonce));
}

Result<std::unique_ptr<Workload>> ScribbleWorkload::create_from(const Gpu& gpu, const Options& options) {
  const Preset& preset = preset_of(options.size);
  const auto now = static_cast<std::uint64_t>(to_ns(SystemClock().now()));
  return create(gpu, preset, options.steps != 0 ? options.steps : preset.steps,
                mix_bits(now) ^ mix_bits(options.seed));
}

Status ScribbleWorkload::allocate(Memory& kept, Memory& scratch) {
  const std::uint64_t size_bytes = std::uint64_t{preset_.words} * sizeof(std::uint64_t);
  const auto place = [](Memory& memory, const char* name, std::uint64_t bytes, CUdeviceptr& out) -> Status {
    const auto address = memory.allocate(name, bytes);
    if (address) out = *address;
    return address ? Status{} : propagate(address);
  };
  for (const auto& [name, region] : {std::pair("field", &field_), std::pair("copied", &copied_),
                                     std::pair("filled", &filled_), std::pair("signalled", &signalled_)}) {
    region->words = region == &signalled_ ? 1 : preset_.words;
    if (auto placed = place(kept, name, size_bytes, region->address); !placed) return placed;
  }
  if (auto placed = place(kept, "finds", sizeof(Finds), finds_); !placed) return placed;
  return place(scratch, "source", size_bytes, source_);
}

Status ScribbleWorkload::warm_up(const Gpu& gpu) const {
  const auto kernels = find_kernels(gpu.module());
  if (!kernels) return propagate(kernels);
  PrivateMemory memory(gpu.driver());
  const auto word = memory.allocate("word", sizeof(std::uint64_t));
  if (!word) return propagate(word);
  LaunchQueue queue(*kernels, gpu.stream().handle());
  Region own{*word, 1, 0};
  queue_exchange(queue, own, 0, 1, false);
  if (!queue.status()) return queue.status();
  return gpu.stream().synchronize();
}

Status ScribbleWorkload::move_to(const Gpu& gpu) { return kernels_.replace_by(find_kernels(gpu.module())); }

Status ScribbleWorkload::queue_step(const Gpu& gpu, std::uint64_t step) {
  if (step == 0 && !took_over_at_) {
    const Status cleared = cuda::fill_bytes(gpu.driver(), finds_, 0, sizeof(Finds), gpu.stream().handle());
    if (!cleared) return cleared;
  }
  LaunchQueue queue(kernels_, gpu.stream().handle());
  queue_exchanges(queue, step, step > 0 || took_over_at_);
  if (!queue.status()) return queue.status();
  state_.step = step;
  const bool watches = took_over_at_ && step < *took_over_at_ + watched_steps;
  return watches ? Status{} : queue_other_engines(gpu, step);
}

Status ScribbleWorkload::take_over(const Gpu& gpu, std::uint64_t next_step,
                                   std::span<const std::byte> bytes) {
  if (next_step > 0) {
    if (const Status restored = state_.restore(bytes, next_step); !restored) return restored;
  }
  took_over_at_ = next_step;
  LaunchQueue queue(kernels_, gpu.stream().handle());
  queue_exchanges(queue, steps_ + 1, false);
  return queue.status();
}

std::uint64_t ScribbleWorkload::value_of(std::uint64_t step, std::uint64_t part) const {
  return mix_bits(nonce_ ^ step) / values_a_step * values_a_step + part;
}

void ScribbleWorkload::queue_exchange(LaunchQueue& queue, Region& region, std::uint64_t value,
                                      std::uint32_t rounds, bool looks_at_first) const {
  queue.launch_each(Kernel::Exchange, region.words,
                    ExchangeArguments{.words = device_pointer<unsigned long long>(region.address),
                                      .finds = device_pointer<Finds>(finds_),
                                      .before = region.holds,
                                      .value = value,
                                      .count = region.words,
                                      .rounds = rounds,
                                      .looks_at_first = looks_at_first});
  region.holds = value + rounds - 1;
}

void ScribbleWorkload::queue_exchanges(LaunchQueue& queue, std::uint64_t step, bool looks_at_first) {
  queue_exchange(queue, field_, value_of(step, 0), preset_.rounds, looks_at_first);
  for (Region* region : {&copied_, &filled_, &signalled_}) {
    queue_exchange(queue, *region, value_of(step, 0), 1, looks_at_first);
  }
}

Status ScribbleWorkload::queue_other_engines(const Gpu& gpu, std::uint64_t step) {
  const cuda::Driver& driver = gpu.driver();
  const CUstream stream = gpu.stream().handle();
  const std::uint64_t value = value_of(step, copied_value);
  const auto half = static_cast<std::uint32_t>(value);
  const std::uint64_t size_bytes = std::uint64_t{preset_.words} * sizeof value;
  LaunchQueue queue(kernels_, stream);
  Region source{source_, preset_.words, 0};
  queue_exchange(queue, source, value, 1, false);
  if (!queue.status()) return queue.status();
  if (auto done = cuda::copy_on_device(driver, copied_.address, source_, size_bytes, stream); !done)
    return done;
  if (auto done = cuda::fill_words(driver, filled_.address, half, std::size_t{preset_.words} * 2, stream);
      !done) {
    return done;
  }
  const CUresult written = driver->cuStreamWriteValue64(stream, signalled_.address, value, 0);
  if (auto done = driver.check(written, "cuStreamWriteValue64"); !done) return done;
  copied_.holds = signalled_.holds = value;
  filled_.holds = std::uint64_t{half} << 32 | half;
  return {};
}

Result<std::string> ScribbleWorkload::output(const Gpu& gpu) {
  if (const Status ended = gpu.stream().synchronize(); !ended) return propagate(ended);
  Finds finds{};
  const auto bytes = std::as_writable_bytes(std::span(&finds, 1));
  if (const Status copied = cuda::copy_to_host(gpu.driver(), bytes, finds_); !copied)
    return propagate(copied);
  if (finds.count == 0) return std::string("no stray write\n");
  std::string text = fmt::format("{} stray writes\n", finds.count);
  for (const Find& find : std::span(finds.first).first(std::min<std::uint64_t>(finds.count, Finds::kept))) {
    text += fmt::format("word {}: found {:016x}, expected {:016x}\n", find.word, find.found, find.expected);
  }
  return text;
}

}  // namespace firebreak::workloads::scribble
