// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's UVM tools interface, /dev/nvidia-uvm-tools, in our own declarations: another process's page
/// faults, told through a queue in our memory. Where each fact is from:
///   - names, field order, sizes and enum values of both event layouts: kernel-open/nvidia-uvm/uvm_types.h,
///     uvm_ioctl.h and uvm_tools.c of NVIDIA's open kernel modules, read at 560.35.03 (which has the first
///     layout alone), 565.57.01 (which brings the second) and 595.45.04;
///   - that driver 580.159.04 answers the ioctl numbers of the first layout with these structures, wants page
///     aligned buffers and answers status 22 for a descriptor that is not a VA space: seen on an H100.
/// The interface has no version field. Which layouts a driver has is asked by the ioctl that makes a queue;
/// the size of an entry can be measured, since the driver pins exactly entries * size bytes
/// (watch/uvm_layout.h).
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
/// The same argument as 56, and a queue of entries in the second layout. Drivers before 565 answer EINVAL.
inline constexpr unsigned long uvm_tools_init_event_tracker_v2 = 76;

/// NV_STATUS values that the detectors tell apart.
inline constexpr std::uint32_t nv_ok = 0;
inline constexpr std::uint32_t nv_err_illegal_action = 22;  ///< the descriptor is not a VA space
inline constexpr std::uint32_t nv_err_insufficient_permissions = 27;
inline constexpr std::uint32_t nv_err_invalid_address = 30;   ///< a buffer that is not mapped for writing
inline constexpr std::uint32_t nv_err_invalid_argument = 31;  ///< the same, on some kernels

/// Argument of uvm_tools_init_event_tracker and of its second version. Buffers are page aligned;
/// `queue_entries` is a power of two.
struct UvmToolsInitEventTracker {
  std::uint64_t queue_buffer;  ///< address of queue_entries entries: UvmEvent or UvmEventV2
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

/// The part of the queue that driver and reader share. Indices are entries, modulo the queue's size. The
/// driver writes an entry at put_behind, then moves both put indices; the reader reads from get_ahead and
/// then moves both get indices. A queue with one free entry is full: further events are counted in `dropped`.
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
  ConfidentialComputing = 16,
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
  Hub = 2,  ///< a unit behind the hub (copy engine, host): a non-replayable fault
};

/// Index of the CPU among processors; GPUs follow it.
inline constexpr std::uint16_t uvm_cpu_index = 0;

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

/// The same in the second layout, where an index counts the instances of a divided GPU one by one.
struct UvmFatalFaultV2 {
  UvmEventType event_type;
  UvmFaultType fault_type;
  UvmAccessType access_type;
  UvmFatalReason reason;
  std::uint16_t processor_index;
  std::uint16_t padding16;
  std::uint64_t address;
  std::uint64_t timestamp_ns;
};
static_assert(sizeof(UvmFatalFaultV2) == 24);
static_assert(offsetof(UvmFatalFaultV2, processor_index) == 4);
static_assert(offsetof(UvmFatalFaultV2, address) == 8);

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

/// The same in the second layout.
struct UvmGpuFaultV2 {
  UvmEventType event_type;
  UvmFaultType fault_type;
  std::uint16_t gpu_index;
  std::uint16_t gpc_or_channel;
  std::uint16_t client_id;
  std::uint64_t address;
  std::uint64_t timestamp_ns;
  std::uint64_t timestamp_gpu_ns;
  std::uint32_t batch_id;
  UvmClientType client_type;
  UvmAccessType access_type;
  std::uint16_t padding16;
};
static_assert(sizeof(UvmGpuFaultV2) == 40);
static_assert(offsetof(UvmGpuFaultV2, address) == 8);
static_assert(offsetof(UvmGpuFaultV2, access_type) == 37);

/// A CPU access to managed memory that faulted; the same in both layouts.
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

/// One entry of the queue: the first byte says which of the above it holds.
template <std::size_t size_bytes>
struct alignas(8) UvmEntry {
  std::array<std::byte, size_bytes> bytes{};

  UvmEventType type() const { return static_cast<UvmEventType>(bytes[0]); }
  template <class T>
  T as() const {
    static_assert(sizeof(T) <= size_bytes);
    T result;
    std::memcpy(&result, bytes.data(), sizeof(T));
    return result;
  }
  template <class T>
  static UvmEntry of(const T& info) {
    static_assert(sizeof(T) <= size_bytes);
    UvmEntry event;
    std::memcpy(event.bytes.data(), &info, sizeof(T));
    return event;
  }
};

/// The first layout ("V1"); the longest event, a migration, fills it.
using UvmEvent = UvmEntry<64>;
/// The second layout ("V2"), which makes room for wider indices and processor masks.
using UvmEventV2 = UvmEntry<72>;
static_assert(sizeof(UvmEvent) == 64 && sizeof(UvmEventV2) == 72);

}  // namespace firebreak::abi
