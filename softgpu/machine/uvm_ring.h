// SPDX-License-Identifier: Apache-2.0
/// What stands behind a process's "nvidia-uvm" descriptors: a memfd with a ring of fatal-fault events.
/// Another process that got the descriptor (pidfd_getfd) maps it and reads along.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "os/fd.h"
#include "os/memory.h"
#include "softgpu/interpreter/gpu_fault.h"
#include "softgpu/machine/record_ring.h"
#include "softgpu/machine/wake_word.h"

namespace firebreak::softgpu {

/// One fatal fault, as UVM's tools interface tells it.
struct UvmFatalFault {
  std::int64_t due_ns = 0;   ///< CLOCK_MONOTONIC; readers hold the event back until then
  std::int64_t when_ns = 0;  ///< the access itself
  std::uint64_t address = 0;
  GpuFaultKind kind = GpuFaultKind::UnmappedAccess;
  GpuAccess access = GpuAccess::None;
  bool replayable = true;  ///< false: a copy engine or the host engine
};

/// A process holds two UVM descriptors, as on the real driver, and only one of them has the events.
enum class UvmDescriptorKind : std::uint32_t { VaSpace = 1, MemoryManager = 2 };

struct UvmPage {
  std::atomic<std::uint32_t> magic;
  std::atomic<std::uint32_t> descriptor_kind;
  WakeWord wake;
  RecordRing<UvmFatalFault, 64> ring;
};

/// One mapped UVM descriptor. Thread safe; one process writes, any number read.
class UvmDescriptor {
 public:
  static constexpr const char* memfd_name = "nvidia-uvm";
  static Result<UvmDescriptor> create(UvmDescriptorKind kind);
  /// For readers: maps a duplicate of somebody's descriptor; InvalidArgument when it is none of ours.
  static Result<UvmDescriptor> from(int fd);

  UvmDescriptorKind kind() const;
  void post(const UvmFatalFault& event);
  /// How many events were ever posted.
  std::uint64_t posted() const { return page_->ring.next_sequence(); }
  /// Event number `sequence`; empty: not there (yet) or overwritten.
  std::optional<UvmFatalFault> read(std::uint64_t sequence) const { return page_->ring.read(sequence); }
  WakeWord& wake() { return page_->wake; }

 private:
  UvmDescriptor(os::Fd fd, os::Mapping mapping);
  os::Fd fd_;
  os::Mapping mapping_;
  UvmPage* page_;
};

}  // namespace firebreak::softgpu
