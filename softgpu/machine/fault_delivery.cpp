// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/fault_delivery.h"

#include <fstream>

namespace firebreak::softgpu {

std::int64_t delay_ns(double milliseconds, double speed) {
  return static_cast<std::int64_t>(milliseconds * 1e6 / speed);
}

std::string process_name(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "<unknown>" : name;
}

bool deliver_fault(SharedGpu& gpu, Domain& domain, UvmDescriptor* events, const FaultReport& report,
                   double speed) {
  const FaultProfile& profile = profile_of(report.cause);
  const std::int64_t now = now_ns();
  const DomainFault fault{profile.error, report.slot, now, now + delay_ns(profile.faulter_error_ms, speed),
                          now + delay_ns(profile.co_client_error_ms, speed)};
  const bool others_live = profile.co_client_error_ms < 0;
  if (!(others_live ? domain.raise_alone(fault) : domain.raise(fault))) return false;
  gpu.stall_until(now + delay_ns(profile.gpu_stall_ms, speed));
  if (events != nullptr && profile.uvm_event_ms >= 0) {
    const bool replayable = report.cause != FaultCause::CopyEngine && report.cause != FaultCause::HostEngine;
    events->post({now + delay_ns(profile.uvm_event_ms, speed), now, report.address, kind_of(report.cause),
                  report.access, replayable});
  }
  const FaultContext context{report.pid,          report.process_name, domain.server_pid(),
                             8 + report.slot * 8, report.access,       report.address};
  for (const DelayedLine& line : xid_lines(profile, context)) {
    gpu.post_kmsg(now + delay_ns(line.delay_ms, speed), line.text);
  }
  return true;
}

}  // namespace firebreak::softgpu
