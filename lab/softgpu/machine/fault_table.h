// SPDX-License-Identifier: Apache-2.0
/// The one table of what becomes of a fault: which CUDA error, which Xid lines, whether UVM tells, who stands
/// still how long, and when each of it shows. The figures were measured on one H100 (driver 580.159.04); the
/// source of each row stands beside it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shared/abi/cuda_result.h"
#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu {

/// The cause of a fault, as far as the consequences differ.
enum class FaultCause {
  UnmappedAccess,
  ReadOnlyViolation,
  InstructionFetch,
  CopyEngine,  ///< a copy or fill whose address was unmapped by the time it ran
  HostEngine,  ///< a stream memory operation (PBDMA) on an unmapped address
  ClientDied,  ///< a client of an MPS server ended with work in flight
  MisalignedAddress,
  OutOfRangeAddress,
  SharedOutOfBounds,
  LocalOutOfBounds,
  StackOverflow,
  IllegalInstruction,
  Trap,
  Breakpoint,
  Assertion,
};

/// One row. Delays count from the faulting access, in milliseconds; negative: never happens.
struct FaultProfile {
  FaultCause cause;
  CUresult error;             ///< error in the faulter and in its co-clients; negative: they live on
  int xid;                    ///< Xid of the first kernel log line; 0: none but the channel's Xid 43
  const char* text;           ///< the fault's name in that line
  double uvm_event_ms;        ///< fatal-fault event of the faulting process
  double xid_ms;              ///< the first line
  double channel_xid_ms;      ///< the Xid 43 that follows
  double nvml_ms;             ///< NVML's event, of nvml_xid()
  double gpu_stall_ms;        ///< time for which every context of the GPU stands still
  double faulter_error_ms;    ///< the CUDA error in the faulting process
  double co_client_error_ms;  ///< delay in its co-clients; negative: they live on
};

std::span<const FaultProfile> fault_table();
const FaultProfile& profile_of(FaultCause cause);
FaultCause cause_of(GpuFaultKind kind);
/// The Xid that NVML tells of: of an SM exception the channel's, not the first.
int nvml_xid(const FaultProfile& profile);
/// Returns when the MPS server's log tells of a fault that ends its domain: with the Xid; of a trap 2 ms
/// before it, as an H100 did (results/h100/characterization.json).
double mps_log_ms(const FaultProfile& profile);
/// The kind that stands for the cause where only the hardware's terms fit (UVM events).
GpuFaultKind kind_of(FaultCause cause);
/// A fault that UVM services: the access is to a managed range, and is done again once memory is there.
struct ServicedFaultProfile {
  double service_ms;  ///< time until the access is done again
  double event_ms;    ///< UVM's event of the process
};
const ServicedFaultProfile& serviced_fault();

/// Time from an exception to the core dumps of the domain's clients; measured: 45 to 60 ms.
inline constexpr double core_dump_ms = 50;

/// The multiprocessors that blocks lie on, those of an H100. What the device says of itself is less, for
/// occupancy (softgpu/driver/device_attributes.h).
inline constexpr std::uint32_t multiprocessors = 132;
/// Where an exception has halted one, kernels of others that have a block there stood still for about so long
/// on an H100, unless the GPU took a turn for another domain (docs/how/parking.md).
inline constexpr double halt_ms = 4000;
/// A turn of the GPU's, where two domains have kernels; some 2 ms on an H100.
inline constexpr double turn_ms = 2;

/// How long every client of the GPU stands still when MPS ends one of them; measured: 7.5 ms at worst.
inline constexpr double terminate_stall_ms = 7.5;

/// The process and the fault, for the text of the log lines.
struct FaultContext {
  pid_t client_pid = 0;
  std::string client_name;
  pid_t server_pid = 0;  ///< 0: without MPS
  std::uint64_t channel = 8;
  GpuAccess access = GpuAccess::None;
  std::uint64_t address = 0;
  std::uint32_t gpu = 0;  ///< number of the GPU, from 0
};

struct DelayedLine {
  double delay_ms = 0;
  std::string text;
};

/// The kernel log lines of a fault, in NVIDIA's format.
std::vector<DelayedLine> xid_lines(const FaultProfile& profile, const FaultContext& context);

/// The reach of a fault of the device.
enum class DeviceFaultReach {
  Domain,  ///< the processes of one fault domain
  Gpu,     ///< every process of the GPU, and all that come until it is reset
};

/// One fault of the device itself. None of it was measured: it is what NVIDIA documents, and the delays are
/// assumed.
struct DeviceFaultProfile {
  int xid;
  CUresult error;  ///< error in every process that it reaches
  DeviceFaultReach reach;
  const char* text;     ///< the log line behind pid and name
  bool names_client;    ///< that line names the process
  bool is_ecc;          ///< NVML tells of a double-bit error too
  bool takes_gpu_away;  ///< NVML answers that the GPU is lost
  double xid_ms;
  double nvml_ms;
  double error_ms;
};

std::span<const DeviceFaultProfile> device_fault_table();
/// Null: there is no such fault.
const DeviceFaultProfile* find_device_fault(int xid);
DelayedLine xid_line(const DeviceFaultProfile& profile, const FaultContext& context);

}  // namespace firebreak::softgpu
