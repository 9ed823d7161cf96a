// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/fault_delivery.h"

#include <chrono>
#include <fstream>
#include <span>
#include <vector>

#include "ground/platform/nvml.h"

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

namespace {

/// The real GPU tears the channels down before anybody is told; here each client stops by itself, which takes
/// as long as it takes to get a turn.
constexpr std::chrono::milliseconds longest_stop{2000};

FaultContext context_of(const SharedGpu& gpu, const Domain& domain, const FaultReport& report) {
  return {report.pid,    report.process_name, domain.server_pid(), 8 + report.slot * 8,
          report.access, report.address,      gpu.number()};
}

/// An Xid 31 of the graphics engine was seen, under MPS, to blame a client that had nothing to do with it, or
/// the server, in most runs; those of a copy engine and of the host engine name the right one.
void blame_somebody_else(const Domain& domain, const FaultReport& report, FaultContext& context) {
  const bool own_engine = report.cause == FaultCause::CopyEngine || report.cause == FaultCause::HostEngine;
  if (own_engine || domain.server_pid() == 0) return;
  for (std::uint32_t slot = 0; slot < DomainPage::client_count_max; ++slot) {
    const pid_t pid = domain.client_pid(slot);
    if (slot == report.slot || pid == 0) continue;
    context.client_pid = pid;
    context.client_name = process_name(pid);
    return;
  }
  context.client_pid = domain.server_pid();
  context.client_name = process_name(context.client_pid);
}

void post_uvm_event(UvmDescriptor* events, const FaultReport& report, std::int64_t now, double speed) {
  const FaultProfile& profile = profile_of(report.cause);
  if (events == nullptr || profile.uvm_event_ms < 0) return;
  const bool hub = report.cause == FaultCause::CopyEngine || report.cause == FaultCause::HostEngine;
  events->post({now + delay_ns(profile.uvm_event_ms, speed), now, report.address, kind_of(report.cause),
                report.access, hub ? 0u : 1u, 1u});
}

/// Returns how many of the fault's lines in the kernel's log the exception itself makes; the end of the
/// channels makes the others.
std::size_t exception_lines(const FaultProfile& profile) { return profile.xid == 13 ? 1 : 0; }

}  // namespace

bool hold_domain(SharedGpu& gpu, Domain& domain, UvmDescriptor* events, const FaultReport& report,
                 const SmException& exception, double speed) {
  if (!domain.is_held() && !domain.has_core_dumps()) return false;
  const std::int64_t now = now_ns();
  gpu.take_turn(domain.owner());  // the owner has it now
  const DomainHold hold{report.slot,    report.cause, report.access,
                        report.address, exception,    now + delay_ns(core_dump_ms, speed),
                        gpu.switches()};
  if (!domain.hold(hold)) return domain.is_held();
  gpu.wake_everybody();
  post_uvm_event(events, report, now, speed);
  const FaultProfile& profile = profile_of(report.cause);
  const std::vector<DelayedLine> lines = xid_lines(profile, context_of(gpu, domain, report));
  for (const DelayedLine& line : std::span(lines).first(exception_lines(profile))) {
    gpu.post_kmsg(now + delay_ns(line.delay_ms, speed), line.text);
  }
  return true;
}

void leave_held_domain(SharedGpu& gpu, Domain& domain, std::uint32_t slot, pid_t pid,
                       const std::string& process_name) {
  constexpr int memory_fault = 31;
  const auto hold = domain.hold();
  if (!hold || hold->faulter_slot == slot || domain.is_newcomer(slot)) return;
  const FaultProfile& profile = profile_of(hold->cause);
  if (profile.xid != memory_fault || !domain.come_up_again()) return;
  const FaultReport report{hold->cause, hold->access, hold->address, slot, pid, process_name, true};
  gpu.wake_everybody();
  gpu.post_kmsg(now_ns(), xid_lines(profile, context_of(gpu, domain, report)).front().text);
}

bool end_hold(SharedGpu& gpu, Domain& domain, double speed) {
  const auto hold = domain.hold();
  if (!hold) return false;
  FaultReport report;
  report.cause = hold->cause;
  report.access = hold->access;
  report.address = hold->address;
  report.slot = hold->faulter_slot;
  report.pid = domain.client_pid(hold->faulter_slot);
  report.process_name = process_name(report.pid);
  report.was_held = true;
  return deliver_fault(gpu, domain, nullptr, report, speed);
}

bool deliver_fault(SharedGpu& gpu, Domain& domain, UvmDescriptor* events, const FaultReport& report,
                   double speed) {
  const FaultProfile& profile = profile_of(report.cause);
  const std::int64_t now = now_ns();
  const auto due = [&](double delay_ms) { return now + delay_ns(delay_ms, speed); };
  const DomainFault fault{profile.error,
                          report.slot,
                          now,
                          due(profile.faulter_error_ms),
                          due(profile.co_client_error_ms),
                          due(mps_log_ms(profile))};
  const bool others_live = profile.co_client_error_ms < 0;
  if (!(others_live ? domain.raise_alone(fault) : domain.raise(fault))) return false;
  gpu.stall_until(due(profile.gpu_stall_ms));
  post_uvm_event(events, report, now, speed);
  if (!others_live) domain.wait_until_quiet(longest_stop);
  FaultContext context = context_of(gpu, domain, report);
  blame_somebody_else(domain, report, context);
  const std::vector<DelayedLine> lines = xid_lines(profile, context);
  for (const DelayedLine& line : std::span(lines).subspan(report.was_held ? exception_lines(profile) : 0)) {
    gpu.post_kmsg(due(line.delay_ms), line.text);
  }
  gpu.post_nvml({due(profile.nvml_ms), abi::nvmlEventTypeXidCriticalError,
                 static_cast<std::uint64_t>(nvml_xid(profile))});
  domain.mark_told();
  return true;
}

bool deliver_device_fault(SharedGpu& gpu, Domain& domain, int xid, const FaultReport& report, double speed) {
  const DeviceFaultProfile* const profile = find_device_fault(xid);
  if (profile == nullptr || gpu.device_fault()) return false;
  const std::int64_t now = now_ns();
  const auto due = [&](double delay_ms) { return now + delay_ns(delay_ms, speed); };
  const std::int64_t error_due_ns = due(profile->error_ms);
  if (profile->reach == DeviceFaultReach::Gpu) {
    gpu.raise_device_fault(xid, error_due_ns);
  } else if (!domain.raise({profile->error, report.slot, now, error_due_ns, error_due_ns, error_due_ns})) {
    return false;
  }
  gpu.wake_everybody();
  const DelayedLine line = xid_line(*profile, context_of(gpu, domain, report));
  gpu.post_kmsg(due(line.delay_ms), line.text);
  if (profile->is_ecc) gpu.post_nvml({due(profile->nvml_ms), abi::nvmlEventTypeDoubleBitEccError, 0});
  gpu.post_nvml({due(profile->nvml_ms), abi::nvmlEventTypeXidCriticalError, static_cast<std::uint64_t>(xid)});
  domain.mark_told();
  return true;
}

}  // namespace firebreak::softgpu
