// SPDX-License-Identifier: Apache-2.0
/// Signals as the detectors make them, for the tests of what becomes of them.
#pragma once

#include <string>

#include "agent/faults/fault/attribution.h"
#include "agent/faults/fault/xid.h"

namespace firebreak::fault {

inline Monotonic at_ms(double ms) { return Monotonic(Nanoseconds(static_cast<std::int64_t>(ms * 1e6))); }

inline Fault signal_of(FaultSource source, FaultClass fault_class, double ms, std::string domain,
                       std::optional<pid_t> pid, std::string kind) {
  Fault fault;
  fault.source = source;
  fault.fault_class = fault_class;
  fault.when = at_ms(ms);
  fault.domain = std::move(domain);
  fault.pid = pid;
  fault.kind = std::move(kind);
  return fault;
}

inline Fault uvm_event(double ms, pid_t pid, std::uint64_t address, std::string domain = "a") {
  Fault fault = signal_of(FaultSource::UvmEvent, FaultClass::MmuReplayable, ms, std::move(domain), pid,
                          "fatal fault: store, invalid PDE");
  fault.address = address;
  return fault;
}

inline Fault killed(double ms, pid_t pid, std::string domain = "a") {
  return signal_of(FaultSource::ProcessExit, FaultClass::Termination, ms, std::move(domain), pid,
                   "killed by signal 9");
}

/// An end of which is not known how it came about.
inline Fault ended(double ms, pid_t pid, std::string domain = "a") {
  Fault fault = killed(ms, pid, std::move(domain));
  fault.kind = "process ended";
  fault.conclusive = false;
  return fault;
}

/// The MPS server's connection to its client broke.
inline Fault lost(double ms, pid_t pid, std::string domain = "a") {
  Fault fault = ended(ms, pid, std::move(domain));
  fault.source = FaultSource::MpsLog;
  fault.kind = "MPS log: client left";
  return fault;
}

/// Any Xid, by its number; `domain` is what is known from the process that it names.
inline Fault xid(double ms, int code, std::optional<pid_t> pid = {}, std::string domain = {},
                 std::string place = {}) {
  Fault fault = from_xid_number(code, FaultSource::Xid, at_ms(ms));
  fault.domain = std::move(domain);
  fault.pid = pid;
  if (place.find("HUBCLIENT") != std::string::npos) fault.fault_class = FaultClass::MmuNonReplayable;
  fault.place = std::move(place);
  return fault;
}

/// One whose words decide.
inline Fault xid_saying(double ms, int code, const std::string& words) {
  return from_xid(*parse_xid("NVRM: Xid (PCI:0000:00:05): " + std::to_string(code) + ", " + words),
                  at_ms(ms));
}

inline Fault xid_31(double ms, std::optional<pid_t> pid, std::uint64_t address, std::string domain = "a",
                    std::string place = "GRAPHICS GPC2 GPCCLIENT_T1_3") {
  Fault fault = xid(ms, 31, pid, std::move(domain), std::move(place));
  fault.address = address;
  return fault;
}

inline Fault nvml_xid(double ms, int code) {
  Fault fault = xid(ms, code);
  fault.source = FaultSource::Nvml;
  return fault;
}

inline WatchedProcess watched(pid_t pid, std::string domain = "a", bool uvm_heard = true) {
  WatchedProcess process;
  process.pid = pid;
  process.domain = std::move(domain);
  process.tenant = "tenant-" + std::to_string(pid);
  process.uvm_heard = uvm_heard;
  return process;
}

}  // namespace firebreak::fault
