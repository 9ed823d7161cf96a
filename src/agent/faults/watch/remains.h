// SPDX-License-Identifier: Apache-2.0
/// Finds out whether the GPU still has something of a process that is gone: NVML lists a dead client of an
/// MPS server for as long as somebody holds its descriptors (seen on an H100), and no longer when nothing was
/// left.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "agent/faults/watch/nvml_library.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"

namespace firebreak::watch {

/// The use that NVML lists of a process, on all GPUs together.
struct GpuUse {
  std::uint64_t used_bytes = 0;
};

/// Empty: it is not listed. Unsupported: this NVML cannot say. Takes milliseconds, or more.
Result<std::optional<GpuUse>> gpu_use_of(const NvmlLibrary& nvml, pid_t pid);

/// "NVML lists it no more: nothing was left", "NVML lists it still, 2000 ms later: 512 MiB", "what was left
/// cannot be checked: ...".
std::string describe_remains(const Result<std::optional<GpuUse>>& use, Milliseconds waited);

struct RemainsPace {
  Milliseconds look{250};       ///< pause between two looks
  Milliseconds longest{2'000};  ///< time for what is left to go
};

/// Lives on the loop's thread; NVML is asked on threads of its own.
class Remains {
 public:
  using Find = std::function<Result<std::optional<GpuUse>>(pid_t)>;
  /// `find` is called on other threads.
  Remains(os::EventLoop& loop, Find find, RemainsPace pace = {});
  Remains(const Remains&) = delete;
  Remains& operator=(const Remains&) = delete;
  /// Waits for a question that is under way. Nobody is told any more.
  ~Remains();

  /// Tells what describe_remains() says, as soon as nothing is left, or it cannot be said, or at the longest.
  void look_for(pid_t pid, std::function<void(const std::string&)> tell);

 private:
  std::string look(pid_t pid);
  void told(std::uint64_t id);

  os::EventLoop& loop_;
  Find find_;
  RemainsPace pace_;
  std::shared_ptr<Remains*> self_;  ///< looks post to this, and it outlives us
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, std::thread> looks_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
};

/// Loads NVML for each question, so that nothing is held of a driver.
Remains::Find find_by_nvml(std::string library);

}  // namespace firebreak::watch
