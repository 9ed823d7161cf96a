// SPDX-License-Identifier: Apache-2.0
/// Makes a fault happen to the machine: the domain is condemned, the GPU stands still, log lines and UVM
/// events are posted with the times at which they show. Everything is a timestamp in shared memory, so
/// nothing of it depends on the faulter's living on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "softgpu/machine/domain.h"
#include "softgpu/machine/fault_table.h"
#include "softgpu/machine/shared_gpu.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu {

struct FaultReport {
  FaultCause cause = FaultCause::UnmappedAccess;
  GpuAccess access = GpuAccess::None;
  std::uint64_t address = 0;
  std::uint32_t slot = 0;  ///< the faulter's, in its domain
  pid_t pid = 0;
  std::string process_name;
  bool was_held = false;  ///< UVM's event, and an Xid 13, were there when the exception was
};

/// False: the domain had faulted before, nothing was done. `events` is the faulter's UVM descriptor or null.
/// `speed` divides every delay.
bool deliver_fault(SharedGpu& gpu, Domain& domain, UvmDescriptor* events, const FaultReport& report,
                   double speed);

/// An exception of an SM, where clients of the domain write core dumps: until these are complete there is no
/// fault. True: the domain is held, now or since an exception before. False: nobody is in that mode, or the
/// domain had faulted before; nothing was done.
bool hold_domain(SharedGpu& gpu, Domain& domain, UvmDescriptor* events, const FaultReport& report,
                 const SmException& exception, double speed);

/// The client of that slot gives its last context back, or has ended. Where a bad pointer of another's kernel
/// holds the domain (a load through null, a jump to a bad address), that comes up again: an Xid 31 names this
/// client, and all who are left stand still until the reset. As on an H100, in 32 of 32 plays
/// (docs/how/parking.md); the delay of that line was not measured, and is none. Once a domain.
void leave_held_domain(SharedGpu& gpu, Domain& domain, std::uint32_t slot, pid_t pid,
                       const std::string& process_name);

/// Now its fault comes. False: it is not held, or had faulted before.
bool end_hold(SharedGpu& gpu, Domain& domain, double speed);

/// The same for a fault of the device itself, noticed in the process that `report` names; its cause, access
/// and address do not matter. False: there is no such fault, or the domain or the device had faulted before.
bool deliver_device_fault(SharedGpu& gpu, Domain& domain, int xid, const FaultReport& report, double speed);

/// A delay of the table as a duration at that speed.
std::int64_t delay_ns(double milliseconds, double speed);

/// The name of a process as the kernel log shows it: the file name of its program.
std::string process_name(pid_t pid);

}  // namespace firebreak::softgpu
