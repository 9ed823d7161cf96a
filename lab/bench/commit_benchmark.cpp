// SPDX-License-Identifier: Apache-2.0
/// What a commit costs the host, per call: fb_commit_changes for one decode step of 16 sequences, beside the
/// bare driver call in the same run, the commit without one (fb_prepare_changes), and a commit of the whole
/// state; at forward states for contexts of 1,000, 16,000 and 64,000 tokens. Prints JSON; needs no agent.
///
/// Warm: one call after the other. Cold: before each call the process reads more memory than the second-level
/// cache holds, as a server's own work between two steps does.
#include <firebreak/firebreak.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "gpu/either_gpu.h"
#include "ground/os/self.h"
#include "ground/platform/platform.h"
#include "program/cuda/first_gpu.h"
#include "program/cuda/stream.h"
#include "tests/client/small_agent.h"

namespace firebreak::bench {
namespace {

constexpr std::uint32_t sequences = 16;
constexpr std::uint32_t page_tokens = 16;
constexpr int warm_up_calls = 300;

/// The forward state of a paged decoder, and what one step changes of it.
class DecodeState {
 public:
  explicit DecodeState(std::uint32_t context_tokens)
      : pages_(context_tokens / page_tokens),
        bytes_((fixed_words + sequences * pages_) * sizeof(std::uint32_t)) {}

  const std::vector<std::byte>& bytes() const { return bytes_; }

  /// Gives every sequence a token; one of them begins a new page of its cache.
  std::span<const fb_change> advance(std::uint32_t step) {
    for (std::uint32_t i = 0; i < sequences; ++i) {
      lengths_[i] = step;
      tokens_[i] = step * 31 + i;
    }
    std::fill(random_.begin(), random_.end(), step);
    page_ = step;
    const std::uint32_t entry = (step % sequences) * pages_ + step / sequences % pages_;
    changes_ = {{{0, lengths_.data(), sizeof lengths_},
                 {sizeof lengths_, tokens_.data(), sizeof tokens_},
                 {sizeof lengths_ + sizeof tokens_, random_.data(), sizeof random_},
                 {(fixed_words + entry) * sizeof(std::uint32_t), &page_, sizeof page_}}};
    return changes_;
  }

 private:
  static constexpr std::size_t random_words = 8;
  static constexpr std::size_t fixed_words = sequences * 2 + random_words;
  std::uint32_t pages_;
  std::vector<std::byte> bytes_;
  std::array<std::uint32_t, sequences> lengths_{};
  std::array<std::uint32_t, sequences> tokens_{};
  std::array<std::uint32_t, random_words> random_{};
  std::uint32_t page_ = 0;
  std::array<fb_change, 4> changes_{};
};

/// Reads what the caches then hold instead of ours.
class OtherWork {
 public:
  std::uint64_t run() const { return std::accumulate(memory_.begin(), memory_.end(), std::uint64_t{0}); }

 private:
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>((std::size_t{8} << 20) / 8, 1);
};

struct Times {
  std::vector<double> us;

  nlohmann::json summary() {
    std::sort(us.begin(), us.end());
    const double mean = std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
    return {{"mean_us", mean},
            {"median_us", us[us.size() / 2]},
            {"p99_us", us[us.size() * 99 / 100]},
            {"calls", us.size()}};
  }
};

template <class Call>
double timed_us(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

/// One active of its own agent, on a stream of its own.
class Bench {
 public:
  Bench(const cuda::FirstGpu& gpu, testing_agent::SmallAgent& agent, int calls)
      : gpu_(gpu), stream_(std::move(cuda::Stream::create(gpu.driver()).value())), calls_(calls) {
    const fb_join_options options{sizeof options, agent.socket_path().c_str(), "bench", FB_ROLE_ACTIVE};
    good(fb_join(&options, &session_), "fb_join");
    good(fb_counter(session_, &counter_), "fb_counter");
  }
  ~Bench() { fb_leave(session_); }

  nlohmann::json measure(std::uint32_t context_tokens, bool is_cold) {
    DecodeState state(context_tokens);
    nlohmann::json row = {{"context_tokens", context_tokens},
                          {"state_bytes", state.bytes().size()},
                          {"caches", is_cold ? "cold" : "warm"}};
    Times clock, bare, changes, prepare, whole;
    commit_whole(state);
    for (int i = -warm_up_calls; i < calls_; ++i) {
      const auto now = [&](Times& times, const auto& call) {
        if (is_cold) work_done_ += other_work_.run();
        const double us = timed_us(call);
        if (i >= 0) times.us.push_back(us);
        wait_for_gpu();
      };
      now(clock, [] {});
      now(changes, [&] { commit_changes(state); });
      // The same value again, so that nothing is counted by it.
      now(bare, [&] { good(write_counter(), "cuStreamWriteValue64"); });
      now(prepare, [&] { prepare_changes(state); });
      good(write_counter(), "cuStreamWriteValue64");
      wait_for_gpu();
    }
    for (int i = -warm_up_calls; i < calls_; ++i) {
      if (is_cold) work_done_ += other_work_.run();
      const double us = timed_us([&] { commit_whole(state); });
      if (i >= 0) whole.us.push_back(us);
      wait_for_gpu();
    }
    row["clock"] = clock.summary();
    row["cuStreamWriteValue64"] = bare.summary();
    row["fb_commit_changes"] = changes.summary();
    row["fb_prepare_changes"] = prepare.summary();
    row["fb_commit"] = whole.summary();
    return row;
  }
  std::uint64_t work_done() const { return work_done_; }

 private:
  /// A benchmark that measures errors is of no use.
  template <class Status>
  void good(Status status, const char* call) const {
    if (status == Status{}) return;
    std::fprintf(stderr, "%s: %d: %s\n", call, static_cast<int>(status), fb_last_error(session_));
    std::exit(1);
  }
  void wait_for_gpu() const {
    good(gpu_.driver()->cuStreamSynchronize(stream_.handle()), "cuStreamSynchronize");
  }
  CUresult write_counter() const {
    return gpu_.driver()->cuStreamWriteValue64(stream_.handle(), counter_, next_step_, 0);
  }
  void commit_changes(DecodeState& state) {
    const auto changes = state.advance(static_cast<std::uint32_t>(next_step_));
    good(fb_commit_changes(session_, stream_.handle(), next_step_++, changes.data(), changes.size()),
         "fb_commit_changes");
  }
  void prepare_changes(DecodeState& state) {
    const auto changes = state.advance(static_cast<std::uint32_t>(next_step_));
    good(fb_prepare_changes(session_, stream_.handle(), next_step_++, changes.data(), changes.size()),
         "fb_prepare_changes");
  }
  void commit_whole(const DecodeState& state) {
    good(fb_commit(session_, stream_.handle(), next_step_++, state.bytes().data(), state.bytes().size()),
         "fb_commit");
  }

  const cuda::FirstGpu& gpu_;
  cuda::Stream stream_;
  int calls_;
  fb_session* session_ = nullptr;
  std::uint64_t counter_ = 0;
  std::uint64_t next_step_ = 0;
  OtherWork other_work_;
  std::uint64_t work_done_ = 0;  ///< keeps the other work from being optimised away
};

Result<nlohmann::json> run(int calls) {
  const auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  const auto platform = gpu::choose_either(directory->path());
  if (!platform) return propagate(platform);
  auto environment = platform->environment;
  environment.emplace_back("FIREBREAK_CUDA_LIBRARY", platform->cuda_library);
  const os::EnvironmentScope scope(environment);
  const auto gpu = cuda::FirstGpu::open(platform->cuda_library);
  if (!gpu) return propagate(gpu);
  const auto device = gpu->context().device();
  if (!device) return propagate(device);
  const auto info = device->info();
  if (!info) return propagate(info);
  const auto agent = testing_agent::SmallAgent::start();
  if (!agent) return propagate(agent);
  Bench bench(*gpu, **agent, calls);
  nlohmann::json report = {{"device", info->name},
                           {"driver_version", info->driver_version},
                           {"gpu", platform::to_string(platform->gpu)},
                           {"sequences", sequences},
                           {"changed_bytes_a_step", 16 * 4 * 2 + 8 * 4 + 4},
                           {"rows", nlohmann::json::array()}};
  for (const bool is_cold : {false, true}) {
    for (const std::uint32_t tokens : {1'000U, 16'000U, 64'000U})
      report["rows"].push_back(bench.measure(tokens, is_cold));
  }
  report["other_work"] = bench.work_done();
  return report;
}

}  // namespace
}  // namespace firebreak::bench

int main(int count, char** arguments) {
  // Arguments that `./dev bench` gives to every benchmark are not for this one: a number of calls, or
  // nothing.
  const int given = count > 1 ? std::atoi(arguments[1]) : 0;
  const auto report = firebreak::bench::run(given > 0 ? given : 3000);
  if (!report) {
    std::fprintf(stderr, "commit_benchmark: %s\n", firebreak::to_string(report.error()).c_str());
    return 1;
  }
  std::printf("%s\n", report->dump(1).c_str());
  return 0;
}
