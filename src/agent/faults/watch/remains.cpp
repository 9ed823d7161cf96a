// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/remains.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ground/base/units.h"
#include "ground/os/self.h"

namespace firebreak::watch {
namespace {

/// Largest number of processes that share a GPU: MPS takes 60 clients on newer ones.
constexpr unsigned int processes_max = 512;

Result<std::vector<abi::nvmlProcessInfo_t>> processes_on(const NvmlLibrary& nvml, unsigned int index) {
  abi::nvmlDevice_t device = nullptr;
  std::vector<abi::nvmlProcessInfo_t> processes(processes_max);
  unsigned int count = processes_max;
  abi::nvmlReturn_t status = nvml.call().nvmlDeviceGetHandleByIndex_v2(index, &device);
  if (status == abi::NVML_SUCCESS) {
    status = nvml.call().nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes.data());
  }
  if (status != abi::NVML_SUCCESS) {
    return fail(ErrorCode::Unsupported,
                fmt::format("NVML lists no processes ({})", static_cast<int>(status)));
  }
  processes.resize(std::min(count, processes_max));
  return processes;
}

}  // namespace

Result<std::optional<GpuUse>> gpu_use_of(const NvmlLibrary& nvml, pid_t pid) {
  if (nvml.call().nvmlDeviceGetComputeRunningProcesses_v3 == nullptr) {
    return fail(ErrorCode::Unsupported, "this NVML lists no processes");
  }
  unsigned int gpus = 0;
  if (nvml.call().nvmlDeviceGetCount_v2(&gpus) != abi::NVML_SUCCESS) gpus = 0;
  std::optional<GpuUse> use;
  for (unsigned int gpu = 0; gpu < gpus; ++gpu) {
    const auto processes = processes_on(nvml, gpu);
    if (!processes) return propagate(processes);
    for (const abi::nvmlProcessInfo_t& process : *processes) {
      if (process.pid != static_cast<unsigned int>(pid)) continue;
      if (!use) use.emplace();
      if (process.usedGpuMemory != abi::NVML_VALUE_NOT_AVAILABLE) use->used_bytes += process.usedGpuMemory;
    }
  }
  if (gpus == 0) return fail(ErrorCode::Unsupported, "NVML sees no GPU");
  return use;
}

std::string describe_remains(const Result<std::optional<GpuUse>>& use, Milliseconds waited) {
  if (!use) return "what was left cannot be checked: " + use.error().message;
  if (!*use) return "NVML lists it no more: nothing was left";
  return fmt::format("NVML lists it still, {} ms later: {} MiB", waited.count(), (*use)->used_bytes / mib);
}

Remains::Remains(os::EventLoop& loop, Find find, RemainsPace pace)
    : loop_(loop), find_(std::move(find)), pace_(pace), self_(std::make_shared<Remains*>(this)) {}

Remains::~Remains() {
  *self_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& [id, thread] : looks_) thread.join();
}

void Remains::look_for(pid_t pid, std::function<void(const std::string&)> tell) {
  const std::uint64_t id = next_id_++;
  auto thread = os::start_thread([this, id, pid, tell] {
    std::string found = look(pid);
    loop_.post([self = self_, id, tell, found = std::move(found)] {
      if (*self == nullptr) return;
      (*self)->told(id);
      tell(found);
    });
  });
  if (thread) {
    looks_[id] = std::move(*thread);
  } else {
    loop_.post([why = to_string(thread.error()), tell = std::move(tell)] { tell("not looked for: " + why); });
  }
}

void Remains::told(std::uint64_t id) {
  looks_.at(id).join();
  looks_.erase(id);
}

std::string Remains::look(pid_t pid) {
  for (Milliseconds waited{};; waited += pace_.look) {
    const auto use = find_(pid);
    const bool is_left = use && use->has_value();
    std::unique_lock lock(mutex_);
    if (!is_left || waited >= pace_.longest || stopping_) return describe_remains(use, waited);
    changed_.wait_for(lock, pace_.look, [this] { return stopping_; });
  }
}

Remains::Find find_by_nvml(std::string library) {
  return [library = std::move(library)](pid_t pid) -> Result<std::optional<GpuUse>> {
    const auto nvml = NvmlLibrary::open(library);
    if (!nvml) return propagate(nvml);
    return gpu_use_of(**nvml, pid);
  };
}

}  // namespace firebreak::watch
