// SPDX-License-Identifier: Apache-2.0
/// A tenant that knows nothing of Firebreak: one kernel again and again, whose result is known. Every word of
/// it is compared after every launch. Says "working" after the first one, and at the end what it saw.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "workloads/common/gpu.h"

namespace {

using namespace firebreak;
using workloads::Gpu;

constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry mix(.param .u64 words, .param .u32 seed, .param .u32 rounds)
{
  .reg .u64 %words, %at;
  .reg .u32 %block, %size, %thread, %i, %x, %shifted, %left;
  .reg .pred %more;
  ld.param.u64 %words, [words];
  ld.param.u32 %x, [seed];
  ld.param.u32 %left, [rounds];
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %i, %block, %size, %thread;
  xor.b32 %x, %x, %i;
again:
  mad.lo.u32 %x, %x, 1664525, 1013904223;
  shr.u32 %shifted, %x, 3;
  xor.b32 %x, %x, %shifted;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %more, %left, 0;
  @%more bra again;
  mul.wide.u32 %at, %i, 4;
  add.u64 %at, %words, %at;
  st.global.u32 [%at], %x;
  ret;
}
)";

struct Options {
  double seconds = 5;
  std::string until;  ///< a file; empty: the seconds say it
  unsigned int blocks = 1;
  unsigned int threads = 128;
  std::uint32_t rounds = 200;
  std::uint64_t stray_gib = 0;  ///< distance behind its memory at which it stores at last; 0: it does not
  double pause_ms = 0;          ///< pause between a result and the next launch
  double stall_ms = 0;          ///< a launch that takes longer is told of by itself; 0: none is
};

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}

std::uint32_t expected(std::uint32_t i, std::uint32_t seed, std::uint32_t rounds) {
  std::uint32_t x = seed ^ i;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    x = x * 1664525U + 1013904223U;
    x ^= x >> 3;
  }
  return x;
}

struct Stall {
  std::int64_t began_ns;  ///< CLOCK_MONOTONIC
  double ms;
};

struct Seen {
  std::uint64_t launches = 0;
  std::uint64_t wrong_words = 0;
  double longest_ms = 0;        ///< time from a launch to its result
  double longest_ended_ms = 0;  ///< the moment of that, since the first launch
  std::string error;            ///< empty: none
  std::vector<Stall> stalls;    ///< the first stalls_max
};

constexpr std::size_t stalls_max = 10'000;

Status once(const Gpu& gpu, const cuda::Function& mix, const cuda::DeviceBuffer& words,
            const Options& options, std::vector<std::uint32_t>& result) {
  constexpr std::uint32_t seed = 7;
  const cuda::LaunchShape shape{{options.blocks, 1, 1}, {options.threads, 1, 1}};
  if (Status cleared =
          cuda::fill_words(gpu.driver(), words.address(), 0, result.size(), gpu.stream().handle());
      !cleared)
    return cleared;
  if (Status launched = mix.launch(gpu.stream().handle(), shape, words.address(), seed, options.rounds);
      !launched)
    return launched;
  if (Status copied = cuda::copy_to_host(gpu.driver(), std::as_writable_bytes(std::span(result)),
                                         words.address(), gpu.stream().handle());
      !copied)
    return copied;
  return gpu.stream().synchronize();
}

/// A mistake of its own.
Status go_astray(const Gpu& gpu, const cuda::Function& mix, const cuda::DeviceBuffer& words,
                 const Options& options) {
  const cuda::LaunchShape shape{{1, 1, 1}, {1, 1, 1}};
  const CUdeviceptr astray = words.address() + (options.stray_gib << 30);
  const std::uint32_t seed = 7;
  const std::uint32_t rounds = 1;
  if (Status launched = mix.launch(gpu.stream().handle(), shape, astray, seed, rounds); !launched)
    return launched;
  return gpu.stream().synchronize();
}

bool is_over(const Options& options, double since_begin_ms) {
  if (!options.until.empty()) return std::filesystem::exists(options.until);
  return since_begin_ms >= options.seconds * 1e3;
}

Result<Seen> play(const Options& options) {
  const auto gpu = Gpu::open_primary(ptx);
  if (!gpu) return propagate(gpu);
  const auto mix = gpu->module().function("mix");
  if (!mix) return propagate(mix);
  std::vector<std::uint32_t> result(std::size_t{options.blocks} * options.threads);
  std::vector<std::uint32_t> right(result.size());
  for (std::size_t i = 0; i < right.size(); ++i)
    right[i] = expected(static_cast<std::uint32_t>(i), 7, options.rounds);
  const auto words = cuda::DeviceBuffer::allocate(gpu->driver(), result.size() * sizeof(std::uint32_t));
  if (!words) return propagate(words);
  Seen seen;
  const auto begin = Clock::now();
  for (bool is_last = false; !is_last;) {
    is_last = is_over(options, ms_since(begin));  // asked before a launch, which comes after whatever said so
    const auto launch = Clock::now();
    const Status done = once(*gpu, *mix, *words, options, result);
    const double took_ms = ms_since(launch);
    if (seen.launches > 0 && took_ms > seen.longest_ms) {
      seen.longest_ms = took_ms;
      seen.longest_ended_ms = ms_since(begin);
    }
    if (options.stall_ms > 0 && took_ms > options.stall_ms && seen.launches > 0 &&
        seen.stalls.size() < stalls_max)
      seen.stalls.push_back({std::chrono::nanoseconds(launch.time_since_epoch()).count(), took_ms});
    if (!done) {
      seen.error = done.error().message;
      break;
    }
    for (std::size_t i = 0; i < right.size(); ++i) seen.wrong_words += result[i] != right[i] ? 1 : 0;
    if (++seen.launches == 1) {
      std::puts("working");
      std::fflush(stdout);
    }
    if (options.pause_ms > 0)
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.pause_ms));
  }
  if (options.stray_gib == 0 || !seen.error.empty()) return seen;
  const Status strayed = go_astray(*gpu, *mix, *words, options);
  if (!strayed) seen.error = "its stray: " + strayed.error().message;
  return seen;
}

}  // namespace

int main(int argument_count, char** arguments) {
  Options options;
  CLI::App app("A tenant that knows nothing of Firebreak, and compares every word of every result.");
  app.add_option("--seconds", options.seconds, "how long it works")->check(CLI::Range(0.1, 86400.0));
  app.add_option("--until", options.until, "works until that file is there, and not for some seconds");
  app.add_option("--blocks", options.blocks, "of each launch")->check(CLI::Range(1U, 65535U));
  app.add_option("--rounds", options.rounds, "of each thread")->check(CLI::Range(1U, 1U << 30));
  app.add_option("--stray-gib", options.stray_gib, "at last stores so far behind its memory")
      ->check(CLI::Range(1U, 60U));
  app.add_option("--pause-ms", options.pause_ms, "does nothing for so long after each result")
      ->check(CLI::Range(0.1, 60'000.0));
  app.add_option("--stalls", options.stall_ms, "tells of each launch that takes so many ms or longer");
  CLI11_PARSE(app, argument_count, arguments);
  const auto seen = play(options);
  if (!seen) {
    std::fprintf(stderr, "firebreak-checker: %s\n", to_string(seen.error()).c_str());
    return 1;
  }
  std::string stalls;
  for (const Stall& stall : seen->stalls)
    stalls += fmt::format("{}[{}, {:.3f}]", stalls.empty() ? "" : ", ", stall.began_ns, stall.ms);
  fmt::print(
      "{{\"launches\": {}, \"wrong_words\": {}, \"longest_ms\": {:.3f}, \"longest_ended_ms\": {:.1f}, "
      "\"error\": \"{}\", \"stalls\": [{}]}}\n",
      seen->launches, seen->wrong_words, seen->longest_ms, seen->longest_ended_ms, seen->error, stalls);
  std::fflush(stdout);
  return seen->error.empty() && seen->wrong_words == 0 ? 0 : 1;
}
