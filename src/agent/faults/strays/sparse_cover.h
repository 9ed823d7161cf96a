// SPDX-License-Identifier: Apache-2.0
/// Sparse ranges over low addresses of tenants that load nothing of ours, laid from outside through a
/// duplicate of the tenant's UVM descriptor. The GPU reads zero there, what it writes vanishes, and nobody is
/// told: this contains, and reports nothing. Page tables take about 0.18 MiB of GPU memory a GiB.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/units.h"
#include "ground/os/addresses.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::strays {

struct SparseOptions {
  /// CUDA allocates nothing below: what is sparse cannot be mapped by the driver.
  std::uint64_t low_end = 4 * gib;
  /// Room into which mappings of a program at fixed addresses, and its heap, may grow.
  std::uint64_t room_to_grow_bytes = gib;
  /// Size of a piece: the loop has more to do, at 3.6 ms a GiB.
  std::uint64_t piece_bytes = 256 * mib;
  Nanoseconds pause = std::chrono::milliseconds(1);
  /// A process's VA space is there before its GPUs are in it: try again after this, twice as long each time.
  Nanoseconds first_retry = std::chrono::milliseconds(20);
  int tries_max = 8;
};

struct SparseReport {
  std::uint64_t covered_bytes = 0;
  std::uint64_t refused_bytes = 0;
  std::string reason;  ///< why some, or all, was refused
};

/// "4095 MiB of unused low addresses swallow strays; ...".
std::string describe(const SparseReport& report);

/// Plans the addresses of a process, in pieces: low ones, away from what it has mapped there.
std::vector<os::AddressRange> plan_sparse(const std::vector<os::MappedRegion>& mapped,
                                          const SparseOptions& options);

/// Lives on the loop's thread; `on_done` must not destroy it.
class SparseCover {
 public:
  using OnDone = std::function<void(pid_t, const SparseReport&)>;
  SparseCover(os::EventLoop& loop, os::Kernel& kernel, SparseOptions options, OnDone on_done)
      : loop_(loop), kernel_(kernel), options_(options), on_done_(std::move(on_done)) {}
  SparseCover(const SparseCover&) = delete;
  SparseCover& operator=(const SparseCover&) = delete;

  /// The process has a VA space by now. One that has the guard's library is left to its guard, whose guard
  /// ranges tells of strays.
  void cover(pid_t pid);
  void forget(pid_t pid) { works_.erase(pid); }

 private:
  struct Work {
    os::Fd va_space;
    std::vector<os::AddressRange> left;
    SparseReport report;
    int tries = 0;
    Nanoseconds retry{};
    os::Watch next;
  };

  Result<os::Fd> va_space_of(pid_t pid);
  void step(pid_t pid);
  void step_later(pid_t pid, Work& work, Nanoseconds pause);
  void finish(pid_t pid, SparseReport report);
  /// NV_STATUS; where it is not nv_ok the range is free again.
  std::uint32_t make_sparse(const os::Fd& va_space, os::AddressRange range);
  std::uint32_t map_on_all_gpus(const os::Fd& va_space, os::AddressRange range);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  SparseOptions options_;
  OnDone on_done_;
  std::map<pid_t, Work> works_;
};

}  // namespace firebreak::strays
