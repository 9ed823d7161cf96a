// SPDX-License-Identifier: Apache-2.0
#include "idempotency/traced_gpu.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace firebreak::idempotency {
namespace {

constexpr std::uint64_t spacing_bytes = 1U << 20;
constexpr std::uint64_t most_steps = 4'000'000;  // instructions of warps

class Recorder : public softgpu::AccessObserver {
 public:
  Recorder(std::vector<softgpu::ObservedAccess>& into, std::uint64_t most) : into_(into), most_(most) {}
  bool observe(const softgpu::ObservedAccess& access) override {
    has_stopped_ = into_.size() >= most_;
    if (!has_stopped_) into_.push_back(access);
    return !has_stopped_;
  }
  bool has_stopped() const { return has_stopped_; }

 private:
  std::vector<softgpu::ObservedAccess>& into_;
  std::uint64_t most_;
  bool has_stopped_ = false;
};

// Nobody stops it: it has its steps.
class NoControl : public softgpu::ExecutionControl {
 public:
  bool should_stop() override { return false; }
};

}  // namespace

std::uint64_t TracedGpu::allocate(std::uint64_t size_bytes) {
  const std::uint64_t address = next_;
  next_ += (size_bytes / spacing_bytes + 2) * spacing_bytes;
  return map(address, size_bytes);
}

std::uint64_t TracedGpu::allocate_behind(std::uint64_t size_bytes) {
  const access::MemoryRange last = ranges_.back();
  next_ += (size_bytes / spacing_bytes + 1) * spacing_bytes;
  return map(last.address + last.size_bytes, size_bytes);
}

std::uint64_t TracedGpu::map(std::uint64_t address, std::uint64_t size_bytes) {
  auto buffer = std::make_shared<std::vector<std::byte>>(size_bytes + 64);
  softgpu::Translation range;
  range.begin = address;
  range.end = address + size_bytes;
  const auto place = reinterpret_cast<std::uintptr_t>(buffer->data());
  range.host = buffer->data() + (32 - place % 32) % 32;
  range.access = softgpu::PageAccess::ReadWrite;
  range.keep_alive = buffer;
  space_.map(range);
  ranges_.push_back({address, size_bytes, address});
  buffers_.push_back(std::move(buffer));
  return address;
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

void TracedGpu::scramble(std::uint64_t seed, std::uint32_t mask) {
  std::mt19937_64 random(seed);
  for (const auto& buffer : buffers_) {
    for (std::size_t at = 0; at + sizeof mask <= buffer->size(); at += sizeof mask) {
      const auto word = static_cast<std::uint32_t>(random() >> 32) & mask;
      std::memcpy(buffer->data() + at, &word, sizeof word);
    }
  }
}

Result<TracedRun> TracedGpu::run(const LaunchCase& launch, std::uint64_t most_accesses, std::uint64_t order) {
  softgpu::Launch request;
  request.module = module_;
  request.kernel = module_ ? module_->find_kernel(launch.kernel) : nullptr;
  if (request.kernel == nullptr) return fail(ErrorCode::NotFound, "no kernel " + launch.kernel);
  request.grid = launch.grid;
  request.block = launch.block;
  request.parameters = launch.parameters;
  if (order != plain_order)
    request.interleaving = softgpu::Interleaving{.seed = order, .most_steps = most_steps};
  TracedRun run;
  Recorder recorder(run.accesses, most_accesses);
  request.observer = &recorder;
  NoControl control;
  const softgpu::LaunchOutcome outcome = softgpu::run_launch(request, space_, control);
  if (std::holds_alternative<softgpu::GpuFault>(outcome)) run.end = RunEnd::Faulted;
  if (std::holds_alternative<softgpu::Stopped>(outcome))
    run.end = recorder.has_stopped() ? RunEnd::Torn : RunEnd::Endless;
  return run;
}

}  // namespace firebreak::idempotency
