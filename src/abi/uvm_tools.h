// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's UVM tools interface, /dev/nvidia-uvm-tools, in our own declarations: another process's page
/// faults, told through a queue in our memory. Where each fact is from:
///   - names, field order and enum values: kernel-open/nvidia-uvm/uvm_types.h, uvm_ioctl.h and uvm_tools.c of
///   NVIDIA's
///     open kernel modules (read at the stored versions before and after the second event layout came in; the
///     first layout, used here, is the same in both);
///   - that driver 580.159.04 answers these ioctl numbers with these structures, wants page aligned buffers
///   and
///     answers status 22 for a descriptor that is not a VA space: seen on an H100.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace firebreak::abi {

inline constexpr const char* uvm_tools_path = "/dev/nvidia-uvm-tools";

/// Requests of ioctl(); plain numbers, not the usual encoding of size and direction.
inline constexpr unsigned long uvm_tools_init_event_tracker = 56;
inline constexpr unsigned long uvm_tools_set_notification_threshold = 57;
inline constexpr unsigned long uvm_tools_event_queue_enable_events = 58;
inline constexpr unsigned long uvm_tools_event_queue_disable_events = 59;

/// NV_STATUS values that the detectors tell apart.
inline constexpr std::uint32_t nv_ok = 0;
inline constexpr std::uint32_t nv_err_illegal_action = 22;  ///< the descriptor is not a VA space
inline constexpr std::uint32_t nv_err_insufficient_permissions = 27;

/// Argument of uvm_tools_init_event_tracker. Buffers are page aligned; `queue_entries` is a power of two.
struct UvmToolsInitEventTracker {
  std::uint64_t queue_buffer;  ///< address of queue_entries * sizeof(UvmEvent) bytes
  std::uint64_t
      queue_entries;  ///< "queueBufferSize": a count, not bytes; 0 asks for counters instead of events
  std::uint64_t control_buffer;  ///< address of a UvmToolsControl
  std::array<std::uint8_t, 16> processor;
  std::uint32_t all_processors;
  std::uint32_t uvm_fd;  ///< our duplicate of the target's UVM descriptor
  std::uint32_t rm_status;
  std::uint32_t padding;
};
static_assert(sizeof(UvmToolsInitEventTracker) == 56);
static_assert(offsetof(UvmToolsInitEventTracker, processor) == 24);
static_assert(offsetof(UvmToolsInitEventTracker, uvm_fd) == 44);
static_assert(offsetof(UvmToolsInitEventTracker, rm_status) == 48);

/// Argument of uvm_tools_set_notification_threshold: poll() wakes when this many entries wait.
struct UvmToolsSetNotificationThreshold {
  std::uint32_t threshold;
  std::uint32_t rm_status;
};
static_assert(sizeof(UvmToolsSetNotificationThreshold) == 8);

/// Argument of uvm_tools_event_queue_enable_events and ..._disable_events.
struct UvmToolsEnableEvents {
  std::uint64_t event_types;  ///< bit mask: 1 << UvmEventType
  std::uint32_t rm_status;
  std::uint32_t padding;
};
static_assert(sizeof(UvmToolsEnableEvents) == 16);

enum class UvmEventType : std::uint8_t {
  Invalid = 0,
  CpuFault = 1,
  Migration = 2,
  GpuFault = 3,
  GpuFaultReplay = 4,
  FaultBufferOverflow = 5,
  FatalFault = 6,
};

constexpr std::uint64_t uvm_event_mask(UvmEventType type) {
  return std::uint64_t{1} << static_cast<std::uint8_t>(type);
}

inline constexpr std::size_t uvm_event_types = 64;

/// What driver and reader share about the queue. Indices are entries, modulo the queue's size. The driver
/// writes an entry at put_behind, then moves both put indices; the reader reads from get_ahead and then moves
/// both get indices. A queue with one free entry is full: further events are counted in `dropped`.
struct UvmToolsControl {
  std::uint32_t get_ahead;
  std::uint32_t get_behind;
  std::uint32_t put_ahead;
  std::uint32_t put_behind;
  std::array<std::uint64_t, uvm_event_types> dropped;
};
static_assert(sizeof(UvmToolsControl) == 528);
static_assert(offsetof(UvmToolsControl, put_behind) == 12);

enum class UvmFaultType : std::uint8_t {
  Invalid = 0,
  InvalidPde = 1,
  InvalidPte = 2,
  Write = 3,
  Atomic = 4,
  InvalidPdeSize = 5,
  LimitViolation = 6,
  UnboundInstanceBlock = 7,
  PrivilegeViolation = 8,
  PitchMaskViolation = 9,
  WorkCreation = 10,
  UnsupportedAperture = 11,
  CompressionFailure = 12,
  UnsupportedKind = 13,
  RegionViolation = 14,
  Poison = 15,
};

enum class UvmAccessType : std::uint8_t { Invalid = 0, Read = 1, Write = 2, Atomic = 3, Prefetch = 4 };

enum class UvmFatalReason : std::uint8_t {
  Invalid = 0,
  InvalidAddress = 1,
  InvalidPermissions = 2,
  InvalidFaultType = 3,
  OutOfMemory = 4,
  InternalError = 5,
  InvalidOperation = 6,
};

enum class UvmClientType : std::uint8_t {
  Invalid = 0,
  Gpc = 1,  ///< inside a GPC: a replayable fault
  Hub = 2,  ///< behind the hub (copy engine, host): a non-replayable fault
};

/// A fault that ends its channel. It does not say whether it was replayable.
struct UvmFatalFault {
  UvmEventType event_type;
  UvmFaultType fault_type;
  UvmAccessType access_type;
  std::uint8_t processor_index;
  UvmFatalReason reason;
  std::uint8_t padding8;
  std::uint16_t padding16;
  std::uint64_t address;
  std::uint64_t timestamp_ns;  ///< CPU time at which the fault was found to be fatal
};
static_assert(sizeof(UvmFatalFault) == 24);
static_assert(offsetof(UvmFatalFault, reason) == 4);
static_assert(offsetof(UvmFatalFault, address) == 8);

/// A GPU page fault that UVM looks into; most are then serviced.
struct UvmGpuFault {
  UvmEventType event_type;
  UvmFaultType fault_type;
  UvmAccessType access_type;
  std::uint8_t gpu_index;
  std::uint16_t gpc_or_channel;  ///< the GPC of a replayable fault, the channel of a non-replayable one
  std::uint16_t client_id;
  std::uint64_t address;
  std::uint64_t timestamp_ns;
  std::uint64_t timestamp_gpu_ns;
  std::uint32_t batch_id;
  UvmClientType client_type;
  std::uint8_t padding8;
  std::uint16_t padding16;
};
static_assert(sizeof(UvmGpuFault) == 40);
static_assert(offsetof(UvmGpuFault, address) == 8);
static_assert(offsetof(UvmGpuFault, client_type) == 36);

/// A CPU access to managed memory that faulted.
struct UvmCpuFault {
  UvmEventType event_type;
  UvmAccessType access_type;
  std::uint16_t padding16;
  std::uint32_t padding32;
  std::uint64_t address;
  std::uint64_t timestamp_ns;
  std::uint32_t pid;
  std::uint32_t thread_id;
  std::uint64_t program_counter;
};
static_assert(sizeof(UvmCpuFault) == 40);

/// One entry of the queue, in the first ("V1") layout. The first byte says which of the above it holds.
struct alignas(8) UvmEvent {
  std::array<std::byte, 64> bytes{};

  UvmEventType type() const { return static_cast<UvmEventType>(bytes[0]); }
  template <class T>
  T as() const {
    static_assert(sizeof(T) <= 64);
    T result;
    std::memcpy(&result, bytes.data(), sizeof(T));
    return result;
  }
  template <class T>
  static UvmEvent of(const T& info) {
    static_assert(sizeof(T) <= 64);
    UvmEvent event;
    std::memcpy(event.bytes.data(), &info, sizeof(T));
    return event;
  }
};
static_assert(sizeof(UvmEvent) == 64);

}  // namespace firebreak::abi
