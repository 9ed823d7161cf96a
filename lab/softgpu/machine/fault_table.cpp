// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/fault_table.h"

#include <fmt/core.h>

#include <array>
#include <cassert>
#include <cstdlib>

#include "softgpu/machine/device_uuid.h"

namespace firebreak::softgpu {

namespace {

constexpr double never = -1;
constexpr const char* server_name = "nvidia-cuda-mps-server";

// Sources, by column, from the table "When each signal says so" of the first measurements and its notes:
//   uvm_event_ms        0.23-0.57 for MMU faults, none for SM exceptions and trap
//   xid_ms              MMU 91-135; SM exception 6.3-10; trap 9-18 (seen at 12.7-13.9 without poll's tick)
//   channel_xid_ms      SM exceptions are followed by Xid 43; a trap has the Xid 43 alone
//   gpu_stall_ms        MMU 110-150; misaligned about 9; trap about 15; a killed client 130-170
//   nvml_ms             MMU 109-153; SM exception 9.8-11.4 and trap 8-14, both naming Xid 43
//   faulter_error_ms    MMU 110-155; PBDMA 200-467; misaligned 38-90; trap 10-344
//   co_client_error_ms  MMU 145-155; misaligned 66-319; trap 218-228
// The errors are those of the table "Blast radius"; a row marked "assumed" was not measured itself and takes
// the figures of the nearest one that was.
constexpr std::array<FaultProfile, 15> table{{
    // cause, error, xid, text, uvm, xid, channel xid, nvml, stall, faulter, co-clients
    {FaultCause::UnmappedAccess, CUDA_ERROR_ILLEGAL_ADDRESS, 31, "FAULT_PDE", 0.3, 110, never, 112, 118, 120,
     150},
    {FaultCause::ReadOnlyViolation, CUDA_ERROR_ILLEGAL_ADDRESS, 31, "FAULT_RO_VIOLATION", 0.3, 110, never,
     112, 118, 120, 150},
    {FaultCause::InstructionFetch, CUDA_ERROR_ILLEGAL_ADDRESS, 31, "FAULT_PDE", 0.3, 110, never, 112, 118,
     120, 150},
    // A copy from the host on an H100 answered 719 after 42 and 90 ms (the rest assumed), and co-clients that
    // ran kernels lived.
    {FaultCause::CopyEngine, CUDA_ERROR_LAUNCH_FAILED, 31, "FAULT_PDE", 0.5, 40, never, 42, 42, 60, never},
    {FaultCause::HostEngine, CUDA_ERROR_LAUNCH_FAILED, 31, "FAULT_PDE", 0.5, 110, never, 112, 118, 300, 310},
    {FaultCause::ClientDied, CUDA_ERROR_ILLEGAL_ADDRESS, 31, "FAULT_PDE", never, 110, never, 112, 150, 150,
     150},
    {FaultCause::MisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS, 13, "Misaligned Address", never, 7, 8, 10,
     9, 60, 150},
    {FaultCause::OutOfRangeAddress, CUDA_ERROR_ILLEGAL_ADDRESS, 13, "Out Of Range Address", never, 7, 8, 10,
     9, 60, 150},
    {FaultCause::SharedOutOfBounds, CUDA_ERROR_ILLEGAL_INSTRUCTION, 13, "Illegal Instruction Parameter",
     never, 7, 8, 10, 9, 60, 150},
    {FaultCause::LocalOutOfBounds, CUDA_ERROR_ILLEGAL_ADDRESS, 13, "Out Of Range Address", never, 7, 8, 10, 9,
     60, 150},  // assumed
    {FaultCause::StackOverflow, CUDA_ERROR_ILLEGAL_ADDRESS, 13, "Out Of Range Address", never, 7, 8, 10, 9,
     60, 150},
    {FaultCause::IllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION, 13, "Illegal Instruction Encoding",
     never, 7, 8, 10, 9, 60, 150},  // assumed
    {FaultCause::Trap, CUDA_ERROR_LAUNCH_FAILED, 0, "", never, never, 13, 14, 15, 60, 220},
    {FaultCause::Breakpoint, CUDA_ERROR_LAUNCH_FAILED, 0, "", never, never, 13, 14, 15, 60, 220},  // assumed
    {FaultCause::Assertion, CUDA_ERROR_ASSERT, 0, "", never, never, 13, 14, 15, 60,
     220},  // its delays assumed
}};

// Documented, not measured:
//   which Xid means what, what needs a reset   NVIDIA's Xid documentation; contained and uncontained errors
//                                              also in its text on memory error management
//   CUDA errors 214, 220, 226                  the comments of cuda.h; it names none for a lost GPU or a GSP
//                                              that does not answer, so these have the general 719
//   texts of 94 and 95                         the formats in src/nvidia/src/kernel/gpu of the open kernel
//                                              modules; the others as they stand in published logs
//   delays                                     assumed: those of an SM exception; the six seconds that the
//                                              driver waits for the GSP have passed when a row begins
constexpr std::array<DeviceFaultProfile, 6> device_table{{
    {48, CUDA_ERROR_ECC_UNCORRECTABLE, DeviceFaultReach::Gpu,
     "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 4, "
     "subpartition 0.",
     false, true, false, 7, 10, 60},
    {74, CUDA_ERROR_NVLINK_UNCORRECTABLE, DeviceFaultReach::Gpu,
     "NVLink: fatal error detected on link 3(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", false, false, false, 7,
     10, 60},
    {79, CUDA_ERROR_LAUNCH_FAILED, DeviceFaultReach::Gpu, "GPU has fallen off the bus.", false, false, true,
     7, 10, 60},
    {94, CUDA_ERROR_CONTAINED, DeviceFaultReach::Domain, "Contained: SM (0x1). RST: No, D-RST: No", true,
     true, false, 7, 10, 60},
    {95, CUDA_ERROR_ECC_UNCORRECTABLE, DeviceFaultReach::Gpu,
     "Uncontained: LTC TAG (0x2, 0x1). RST: Yes, D-RST: No", false, true, false, 7, 10, 60},
    {119, CUDA_ERROR_LAUNCH_FAILED, DeviceFaultReach::Gpu,
     "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) "
     "(0x20800a4c 0x4).",
     true, false, false, 7, 10, 60},
}};

const char* mmu_engine(FaultCause cause) {
  switch (cause) {
    case FaultCause::CopyEngine:
      return "ENGINE CE0 HUBCLIENT_CE0";
    case FaultCause::HostEngine:
      return "ENGINE GR0_PBDMA1 HUBCLIENT_ESC";
    // A death leaves behind a failed fetch too.
    case FaultCause::InstructionFetch:
    case FaultCause::ClientDied:
      return "ENGINE GRAPHICS GPC1 GPCCLIENT_GCC";
    default:
      return "ENGINE GRAPHICS GPC0 GPCCLIENT_T1_0";
  }
}

std::string pci_address(const FaultContext& context) {
  return fmt::format("PCI:0000:00:{:02x}", first_pci_slot + context.gpu);
}

const char* mmu_access(GpuAccess access) {
  switch (access) {
    case GpuAccess::Store:
      return "ACCESS_TYPE_VIRT_WRITE";
    case GpuAccess::Atomic:
      return "ACCESS_TYPE_VIRT_ATOMIC";
    case GpuAccess::Prefetch:
      return "ACCESS_TYPE_VIRT_PREFETCH";
    default:
      return "ACCESS_TYPE_VIRT_READ";
  }
}

std::string mmu_line(const FaultProfile& profile, const FaultContext& context) {
  return fmt::format(
      "NVRM: Xid ({}): 31, pid={}, name={}, Ch {:08x}, intr 00000000. MMU Fault: {} faulted @ 0x{:x}_{:08x}. "
      "Fault "
      "is of type {} {}",
      pci_address(context), context.client_pid, context.client_name, context.channel,
      mmu_engine(profile.cause), context.address >> 32, context.address & 0xffffffff, profile.text,
      mmu_access(context.access));
}

std::string sm_line(const FaultProfile& profile, const FaultContext& context) {
  return fmt::format(
      "NVRM: Xid ({}): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 0, TPC 0, SM "
      "0): {}",
      pci_address(context), profile.text);
}

std::string channel_line(const FaultContext& context) {
  const bool under_mps = context.server_pid != 0;
  return fmt::format("NVRM: Xid ({}): 43, pid={}, name={}, Ch {:08x}", pci_address(context),
                     under_mps ? context.server_pid : context.client_pid,
                     under_mps ? std::string(server_name) : context.client_name, context.channel);
}

}  // namespace

std::span<const FaultProfile> fault_table() { return table; }

const FaultProfile& profile_of(FaultCause cause) {
  for (const FaultProfile& profile : table) {
    if (profile.cause == cause) return profile;
  }
  assert(false && "every cause has a row");
  std::abort();
}

FaultCause cause_of(GpuFaultKind kind) {
  switch (kind) {
    case GpuFaultKind::UnmappedAccess:
      return FaultCause::UnmappedAccess;
    case GpuFaultKind::ReadOnlyViolation:
      return FaultCause::ReadOnlyViolation;
    case GpuFaultKind::InstructionFetch:
      return FaultCause::InstructionFetch;
    case GpuFaultKind::MisalignedAddress:
      return FaultCause::MisalignedAddress;
    case GpuFaultKind::OutOfRangeAddress:
      return FaultCause::OutOfRangeAddress;
    case GpuFaultKind::SharedOutOfBounds:
      return FaultCause::SharedOutOfBounds;
    case GpuFaultKind::LocalOutOfBounds:
      return FaultCause::LocalOutOfBounds;
    case GpuFaultKind::StackOverflow:
      return FaultCause::StackOverflow;
    case GpuFaultKind::IllegalInstruction:
      return FaultCause::IllegalInstruction;
    case GpuFaultKind::Trap:
      return FaultCause::Trap;
    case GpuFaultKind::Breakpoint:
      return FaultCause::Breakpoint;
    case GpuFaultKind::Assertion:
      return FaultCause::Assertion;
  }
  return FaultCause::IllegalInstruction;
}

GpuFaultKind kind_of(FaultCause cause) {
  switch (cause) {
    case FaultCause::ReadOnlyViolation:
      return GpuFaultKind::ReadOnlyViolation;
    case FaultCause::InstructionFetch:
      return GpuFaultKind::InstructionFetch;
    default:
      return GpuFaultKind::UnmappedAccess;
  }
}

double mps_log_ms(const FaultProfile& profile) {
  constexpr double after_xid = 0.5;
  constexpr double before_channel_xid = 2;
  return profile.xid_ms >= 0 ? profile.xid_ms + after_xid : profile.channel_xid_ms - before_channel_xid;
}

const ServicedFaultProfile& serviced_fault() {
  // "A managed guard ranges" in the notes of the first measurements: serviced in 0.05-0.27 ms, reported in
  // 0.1-0.2.
  static constexpr ServicedFaultProfile profile{0.13, 0.15};
  return profile;
}

int nvml_xid(const FaultProfile& profile) { return profile.channel_xid_ms >= 0 ? 43 : profile.xid; }

std::vector<DelayedLine> xid_lines(const FaultProfile& profile, const FaultContext& context) {
  std::vector<DelayedLine> lines;
  if (profile.xid == 31) lines.push_back({profile.xid_ms, mmu_line(profile, context)});
  if (profile.xid == 13) lines.push_back({profile.xid_ms, sm_line(profile, context)});
  if (profile.channel_xid_ms >= 0) lines.push_back({profile.channel_xid_ms, channel_line(context)});
  return lines;
}

std::span<const DeviceFaultProfile> device_fault_table() { return device_table; }

const DeviceFaultProfile* find_device_fault(int xid) {
  for (const DeviceFaultProfile& profile : device_table) {
    if (profile.xid == xid) return &profile;
  }
  return nullptr;
}

DelayedLine xid_line(const DeviceFaultProfile& profile, const FaultContext& context) {
  const std::string who = profile.names_client
                              ? fmt::format("pid={}, name={}", context.client_pid, context.client_name)
                              : std::string("pid='<unknown>', name=<unknown>");
  return {profile.xid_ms,
          fmt::format("NVRM: Xid ({}): {}, {}, {}", pci_address(context), profile.xid, who, profile.text)};
}

}  // namespace firebreak::softgpu
