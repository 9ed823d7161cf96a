// SPDX-License-Identifier: Apache-2.0
#include "idempotency/traced_gpu.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t spacing_bytes = 1U << 20;
constexpr auto longest_run = std::chrono::seconds(10);

class Recorder : public softgpu::AccessObserver {
 public:
  Recorder(std::vector<softgpu::ObservedAccess>& into, std::uint64_t most) : into_(into), most_(most) {}
  bool observe(const softgpu::ObservedAccess& access) override {
    if (into_.size() >= most_) return false;
    into_.push_back(access);
    return true;
  }

 private:
  std::vector<softgpu::ObservedAccess>& into_;
  std::uint64_t most_;
};

// Stops a kernel that neither ends nor touches memory: a loop that nobody leaves.
class Patience : public softgpu::ExecutionControl {
 public:
  Patience() : watchdog_([this] { watch(); }) {}
  ~Patience() override {
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    changed_.notify_one();
    watchdog_.join();
  }
  bool should_stop() override { return true; }
  bool is_over() const { return attention.load() != 0; }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, longest_run, [this] { return is_done_; })) attention = 1;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;  ///< under mutex_
  std::thread watchdog_;  ///< last: it uses the others
};

}  // namespace

std::uint64_t TracedGpu::allocate(std::uint64_t size_bytes) {
  auto buffer = std::make_shared<std::vector<std::byte>>(size_bytes + 64);
  softgpu::Translation range;
  range.begin = next_;
  range.end = next_ + size_bytes;
  const auto place = reinterpret_cast<std::uintptr_t>(buffer->data());
  range.host = buffer->data() + (32 - place % 32) % 32;
  range.access = softgpu::PageAccess::ReadWrite;
  range.keep_alive = buffer;
  space_.map(range);
  ranges_.push_back({next_, size_bytes, next_});
  buffers_.push_back(std::move(buffer));
  next_ += (size_bytes / spacing_bytes + 2) * spacing_bytes;
  return ranges_.back().address;
}

Status TracedGpu::load(ptx::Module module) {
  std::vector<std::string> names;
  for (const ptx::Variable& variable : module.variables) names.push_back(variable.name);
  auto loaded = softgpu::LoadedModule::load(
      std::move(module),
      [this](std::uint64_t size, std::uint64_t) -> Result<std::uint64_t> {
        return allocate(std::max<std::uint64_t>(size, 1));
      },
      [this](std::uint64_t address, std::span<const std::byte> bytes) -> Status {
        const auto found = space_.find(address);
        if (found) std::memcpy(found->host + (address - found->begin), bytes.data(), bytes.size());
        return {};
      });
  if (!loaded) return propagate(loaded);
  module_ = *std::move(loaded);
  variables_.clear();
  for (const std::string& name : names) {
    const auto variable = module_->find_variable(name);
    variables_.push_back(variable ? variable->address : 0);
  }
  return {};
}

std::vector<std::byte> TracedGpu::snapshot() const {
  std::vector<std::byte> all;
  for (const auto& buffer : buffers_) all.insert(all.end(), buffer->begin(), buffer->end());
  return all;
}

void TracedGpu::restore(const std::vector<std::byte>& snapshot) {
  std::size_t at = 0;
  for (const auto& buffer : buffers_) {
    std::copy_n(snapshot.begin() + static_cast<std::ptrdiff_t>(at), buffer->size(), buffer->begin());
    at += buffer->size();
  }
}

std::span<std::byte> TracedGpu::bytes(std::uint64_t address, std::uint64_t size_bytes) {
  const auto found = space_.find(address);
  if (!found || size_bytes > found->end - address) return {};
  return {found->host + (address - found->begin), size_bytes};
}

void TracedGpu::scramble(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const auto& buffer : buffers_)
    for (std::byte& each : *buffer) each = static_cast<std::byte>(random() & 0xFFU);
}

Result<TracedRun> TracedGpu::run(const LaunchCase& launch, std::uint64_t most_accesses,
                                 const std::vector<std::uint32_t>& block_order) {
  softgpu::Launch request;
  request.module = module_;
  request.kernel = module_ ? module_->find_kernel(launch.kernel) : nullptr;
  if (request.kernel == nullptr) return fail(ErrorCode::NotFound, "no kernel " + launch.kernel);
  request.grid = launch.grid;
  request.block = launch.block;
  request.parameters = launch.parameters;
  request.block_order = block_order;
  TracedRun run;
  Recorder recorder(run.accesses, most_accesses);
  request.observer = &recorder;
  Patience patience;
  const softgpu::LaunchOutcome outcome = softgpu::run_launch(request, space_, patience);
  if (std::holds_alternative<softgpu::GpuFault>(outcome)) run.end = RunEnd::Faulted;
  if (std::holds_alternative<softgpu::Stopped>(outcome))
    run.end = patience.is_over() ? RunEnd::Endless : RunEnd::Torn;
  return run;
}

}  // namespace firebreak::idempotency
