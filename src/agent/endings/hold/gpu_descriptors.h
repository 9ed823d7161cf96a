// SPDX-License-Identifier: Apache-2.0
/// Duplicates of what keeps a process's GPU address space and its work alive: its UVM descriptors, and those
/// of the resource manager (/dev/nvidiactl). Those of /dev/nvidia0 are not needed: with UVM's alone, and with
/// both of these, a killed client's kernel ran to its end on an H100 and its neighbour lived
/// (results/h100/dying-probe.json).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/descriptors.h"
#include "ground/os/kernel.h"

namespace firebreak::hold {

enum class Device { AddressSpace, ResourceManager };

/// The devices by the number that the descriptor has in its process.
using Numbers = std::map<int, Device>;

/// Returns the descriptors that the process has now. NotFound: there is no such process; PermissionDenied: it
/// is not ours to look into.
Result<Numbers> gpu_descriptors_of(os::Kernel& kernel, pid_t pid);
/// The same look by look (os::visit_some_descriptors): adds to `seen`, and to `looked_at` how many
/// descriptors of any kind it was shown. Whether those are all now.
Result<bool> add_gpu_descriptors_of(os::Kernel& kernel, pid_t pid, int& from, Numbers& seen,
                                    std::size_t& looked_at);

struct Duplicate {
  Device device = Device::AddressSpace;
  os::Fd descriptor;
  std::optional<os::OpeningMark> mark = {};  ///< mark of an address space, where it can be marked
};

/// The duplicates that are held of one process.
class Duplicates {
 public:
  /// Largest number that is held of one process; a program with several GPUs has far fewer.
  static constexpr std::size_t most_of_a_process = 512;
  /// Largest number that is taken at once, so that a turn of the loop does not last.
  static constexpr std::size_t most_at_once = 64;
  /// Largest number that has_still() compares at once.
  static constexpr std::size_t most_compared = 64;

  /// Takes out those that the process, `now` with these numbers, has no more: a number may mean another file
  /// by now. They are the caller's to close, which may take time.
  Duplicates give_back(os::Kernel& kernel, pid_t pid, const Numbers& now);
  /// Takes those that are new. ResourceExhausted: not all of them, since we have no descriptor left, or
  /// since they are too many, or too many at once: the rest is for the next time. Timeout: since the process
  /// does not let itself be looked at. `held_besides`: of the same process, which it has closed.
  Status take(os::Kernel& kernel, const os::Fd& process, const Numbers& now, std::size_t held_besides = 0);
  /// True when the process has still, under their numbers, those that are compared this time: all, and of
  /// many another part each time (`turn` counts them).
  bool has_still(os::Kernel& kernel, pid_t pid, std::uint32_t turn) const;
  bool empty() const { return duplicates_.empty(); }
  std::size_t size() const { return duplicates_.size(); }
  bool has(Device device) const;
  /// Returns the duplicates of address spaces.
  std::vector<const Duplicate*> spaces() const;
  /// Returns the marks of those that could be marked.
  std::vector<os::OpeningMark> marks() const;
  /// Adds a duplicate whose number in its process nobody knows any more.
  void add(Duplicate duplicate);
  std::vector<os::Fd> release(Device device);

 private:
  void add_taken(int number, Device device, os::Fd descriptor);

  std::map<int, Duplicate> duplicates_;
};

}  // namespace firebreak::hold
