// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/departure.h"

#include "ground/os/descriptors.h"
#include "ground/os/processes.h"

namespace firebreak::watch {
namespace {

/// Empty: its descriptors cannot be seen, or there are none.
std::optional<bool> holds_uvm(os::Kernel& kernel, pid_t pid) {
  const std::string wanted = kernel.uvm_link_target();
  std::optional<bool> holds;
  const auto all_seen = os::visit_first_descriptors(kernel, pid, [&](int, const std::string& target) {
    holds = target == wanted;
    return !*holds;
  });
  if (!all_seen) return std::nullopt;
  // The rest may be what it is where a process has very many.
  return *all_seen || holds == true ? holds : std::nullopt;
}

}  // namespace

std::optional<std::string> departure_of(os::Kernel& kernel, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const Result<std::string> stat = kernel.read_file(folder + "/stat");
  if (!stat) return std::nullopt;
  if ((os::stat_flags(*stat) & os::flag_exiting) != 0) return "is being ended";
  if (holds_uvm(kernel, pid) == false) return "has closed the GPU";
  return std::nullopt;
}

bool may_be_of_departure(const fault::Fault& fault) {
  return fault.source == fault::FaultSource::Xid && fault.fault_class == fault::FaultClass::MmuReplayable;
}

fault::Fault departure_as_fault(const Target& target, const std::string& words, Monotonic when) {
  fault::Fault departure;
  departure.fault_class = fault::FaultClass::Termination;
  departure.kind = words;
  departure.conclusive = false;
  set_subject(departure, target);
  departure.when = when;
  departure.source = fault::FaultSource::ProcessExit;
  return departure;
}

}  // namespace firebreak::watch
