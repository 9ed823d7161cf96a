// SPDX-License-Identifier: Apache-2.0
/// The files behind a process's "nvidia-uvm" descriptors. That of its VA space is a memfd with a ring of page
/// faults and a table of address ranges; another process that got the descriptor (pidfd_getfd) maps it, reads
/// along and makes ranges. The process itself maps it at other addresses too: those are its managed ranges,
/// whose content nobody looks at.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/addresses.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"
#include "softgpu/interpreter/gpu_fault.h"
#include "softgpu/machine/record_ring.h"
#include "softgpu/machine/uvm_ranges.h"
#include "softgpu/machine/wake_word.h"

namespace firebreak::softgpu {

/// One page fault, as UVM's tools interface tells it.
struct UvmPageFault {
  std::int64_t due_ns = 0;   ///< CLOCK_MONOTONIC; readers hold the event back until then
  std::int64_t when_ns = 0;  ///< the access itself
  std::uint64_t address = 0;
  GpuFaultKind kind = GpuFaultKind::UnmappedAccess;
  GpuAccess access = GpuAccess::None;
  std::uint32_t replayable = 1;  ///< 0: a copy engine or the host engine
  std::uint32_t fatal = 1;       ///< 0: it was serviced, and the access went on
};

using UvmRing = RecordRing<UvmPageFault, 512>;

struct UvmPage {
  std::atomic<std::uint32_t> magic;
  std::atomic<std::int32_t> owner_pid;
  WakeWord wake;
  UvmRing ring;
  UvmRangeTable ranges;
};

/// The mapped descriptor of a VA space. Thread safe; one process writes events, any number reads them.
class UvmDescriptor {
 public:
  static constexpr const char* memfd_name = "nvidia-uvm";
  /// Locked (os::lock_while_open) as long as any duplicate of it is there: so long the VA space lives.
  static Result<UvmDescriptor> create();
  /// Maps a duplicate of somebody's descriptor, for others. InvalidArgument when it is none of ours,
  /// PermissionDenied when it is a memory manager's.
  static Result<UvmDescriptor> from(int fd);

  /// The number of the descriptor, where this process made it; -1 after from().
  int fd() const { return fd_.get(); }

  void post(const UvmPageFault& event);
  /// How many events were ever posted.
  std::uint64_t posted() const { return page_->ring.next_sequence(); }
  /// One that another thread is about to post is counted already, and cannot be read yet (RingFollower).
  const UvmRing& ring() const { return page_->ring; }
  /// Event number `sequence`; empty: not there (yet) or overwritten.
  std::optional<UvmPageFault> read(std::uint64_t sequence) const { return page_->ring.read(sequence); }
  WakeWord& wake() { return page_->wake; }

  UvmRangeTable& ranges() { return page_->ranges; }
  const UvmRangeTable& ranges() const { return page_->ranges; }
  /// The managed ranges that its process has now, by address; those that touch are one. Empty when the
  /// process may not be looked at, or is gone. Takes a look at /proc: not for fast paths.
  std::vector<AddressSpan> managed_ranges() const;
  /// True when one of them has an address of the span. For its own process; costs no more where that has much
  /// else mapped (os::memory_map_within).
  bool has_managed_range_in(const AddressSpan& span) const;
  /// Returns those of them where the CPU may write.
  std::vector<AddressSpan> ranges_open_to_cpu() const;

 private:
  bool is_managed(const os::MappedRegion& region) const;
  std::vector<AddressSpan> mapped_ranges(bool only_writable) const;
  UvmDescriptor(os::Fd fd, os::FileIdentity file, os::Mapping mapping);
  os::Fd fd_;
  os::FileIdentity file_;
  os::Mapping mapping_;
  UvmPage* page_;
};

/// The second UVM descriptor that a process of the real driver holds: no VA space, and nobody can map it.
Result<os::Fd> create_memory_manager_descriptor();

}  // namespace firebreak::softgpu
