// SPDX-License-Identifier: Apache-2.0
/// Duplicates of what keeps a process's GPU address space and its work alive: its UVM descriptors, and those
/// of the resource manager (/dev/nvidiactl). Those of /dev/nvidia0 are not needed: with UVM's alone, and with
/// both of these, a killed client's kernel ran to its end on an H100 and its neighbour lived
/// (results/h100/dying-probe.json).
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "os/descriptors.h"
#include "os/kernel.h"

namespace firebreak::hold {

enum class Device { AddressSpace, ResourceManager };

/// By the number that the descriptor has in its process.
using Numbers = std::map<int, Device>;

/// Those that the process has now. NotFound: there is no such process; PermissionDenied: it is not ours to
/// look into.
Result<Numbers> gpu_descriptors_of(os::Kernel& kernel, pid_t pid);
/// The same in parts (os::visit_some_descriptors): adds to `seen`. Whether those are all now.
Result<bool> add_gpu_descriptors_of(os::Kernel& kernel, pid_t pid, int& from, Numbers& seen);

struct Duplicate {
  Device device = Device::AddressSpace;
  os::Fd descriptor;
  std::optional<os::OpeningMark> mark = {};  ///< of an address space, where it can be marked
};

/// What is held of one process.
class Duplicates {
 public:
  /// What a program with several GPUs has is far less.
  static constexpr std::size_t most_of_a_process = 512;
  /// For each the helper is asked (os/broker.h): they are not to make a turn of the loop last.
  static constexpr std::size_t most_at_once = 128;

  /// Those that the process, `now` with these numbers, has no more: a number may mean another file by now.
  /// They are the caller's to close, which may take time.
  Duplicates give_back(os::Kernel& kernel, pid_t pid, const Numbers& now);
  /// Takes those that are new. ResourceExhausted: not all of them, since we have no descriptor left, or
  /// since they are too many, or too many at once: the rest is for the next time. Timeout: since the process
  /// does not let itself be looked at.
  Status take(os::Kernel& kernel, const os::Fd& process, const Numbers& now);
  /// Whether the process has each of them still, under its number.
  bool are_all_of(os::Kernel& kernel, pid_t pid) const;
  bool empty() const { return duplicates_.empty(); }
  std::size_t size() const { return duplicates_.size(); }
  bool has(Device device) const;
  /// Those of address spaces.
  std::vector<const Duplicate*> spaces() const;
  /// Of those that could be marked.
  std::vector<os::OpeningMark> marks() const;
  /// Of one whose number in its process nobody knows any more.
  void add(Duplicate duplicate);
  std::vector<os::Fd> release(Device device);

 private:
  std::map<int, Duplicate> duplicates_;
};

}  // namespace firebreak::hold
