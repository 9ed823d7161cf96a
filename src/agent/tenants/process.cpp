// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/process.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "ground/os/processes.h"

namespace firebreak::agent {

bool may_become(ProcessState from, ProcessState to) {
  using enum ProcessState;
  switch (from) {
    case Starting:
      return to == Running || to == Ending || to == Dying || to == Gone;
    case Running:
      return to == Ending || to == Dying || to == Gone;
    case Ending:
      return to == Dying || to == Gone;
    case Dying:
      return to == Gone;
    case Gone:
      break;
  }
  return false;
}

const char* to_string(ProcessState state) {
  switch (state) {
    case ProcessState::Starting:
      return "starting";
    case ProcessState::Running:
      return "running";
    case ProcessState::Ending:
      return "ending";
    case ProcessState::Dying:
      return "dying";
    case ProcessState::Gone:
      return "gone";
  }
  return "?";
}

std::string start_time_of(os::Kernel& kernel, pid_t pid) {
  const auto stat = kernel.read_file(os::proc_folder(pid) + "/stat");
  return stat ? std::string(os::start_time(*stat)) : std::string();
}

bool may_be_there(os::Kernel& kernel, pid_t pid, const std::string& start_time) {
  if (start_time.empty()) return false;
  const auto stat = kernel.read_file(os::proc_folder(pid) + "/stat");
  return stat ? os::start_time(*stat) == start_time : stat.error().code == ErrorCode::Timeout;
}

std::string control_group_in(const std::string& proc_cgroup) {
  std::istringstream lines(proc_cgroup);
  std::string longest;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t path = line.find(":/");  // NUMBER:CONTROLLERS:PATH
    if (path != std::string::npos && line.size() - path - 1 > longest.size()) longest = line.substr(path + 1);
  }
  const auto is_plain = [](char byte) { return byte > ' ' && byte <= '~'; };
  const bool is_taken =
      longest.size() <= longest_control_group_bytes && std::ranges::all_of(longest, is_plain);
  return is_taken ? longest : std::string();
}

bool Process::become(ProcessState state) {
  if (!may_become(state_, state)) return false;
  state_ = state;
  return true;
}

void Process::end_orderly(std::shared_ptr<OrderlyEnd> end) {
  if (become(ProcessState::Ending)) end_ = std::move(end);
}

Result<Process*> Processes::add(os::Kernel& kernel, pid_t pid, const std::string& tenant,
                                const std::string& domain) {
  auto pidfd = kernel.pidfd_open(pid);
  if (!pidfd) return propagate(pidfd, fmt::format("process {}", pid));
  const auto group = kernel.read_file(os::proc_folder(pid) + "/cgroup");
  auto& place = living_[pid];
  place =
      std::make_unique<Process>(pid, tenant, domain, std::move(*pidfd), control_group_in(group.value_or("")));
  return place.get();
}

Process& Processes::add_dead(pid_t pid, const std::string& tenant, const std::string& domain,
                             const std::set<std::string>& known_in) {
  auto& place = dying_[pid];
  place = std::make_unique<Process>(pid, tenant, domain, os::Fd());
  place->be_in({{}, known_in});
  place->become(ProcessState::Dying);
  return *place;
}

std::string Processes::tenant_of(pid_t pid) const {
  const Process* process = dying(pid);
  if (process == nullptr) process = living(pid);
  return process == nullptr ? "" : process->tenant();
}

std::string Processes::control_group_of(pid_t pid) const {
  const Process* process = dying(pid);
  if (process == nullptr) process = living(pid);
  if (process != nullptr) return process->control_group();
  const Gone* const its = gone(pid);
  return its == nullptr ? std::string() : its->control_group;
}

std::string Processes::tenant_behind(pid_t pid) const {
  const Process* process = dying(pid);
  if (process == nullptr) process = living(pid);
  if (process != nullptr) return process->tenant_behind();
  const Gone* const its = gone(pid);
  return its == nullptr ? std::string() : its->tenant_behind;
}

const Processes::Gone* Processes::gone(pid_t pid) const {
  const auto found = std::ranges::find(gone_, pid, &Gone::pid);
  return found == gone_.end() ? nullptr : &*found;
}

Process& Processes::die(pid_t pid) {
  auto& place = dying_[pid];
  place = std::move(living_.extract(pid).mapped());
  place->become(ProcessState::Dying);
  return *place;
}

Process* Processes::find(const Table& table, pid_t pid) {
  const auto found = table.find(pid);
  return found == table.end() ? nullptr : found->second.get();
}

std::vector<Process*> Processes::all(const Table& table) {
  std::vector<Process*> all;
  for (const auto& [pid, process] : table) all.push_back(process.get());
  return all;
}

std::unique_ptr<Process> Processes::take(Table& table, pid_t pid) {
  auto node = table.extract(pid);
  if (node.empty()) return nullptr;
  node.mapped()->become(ProcessState::Gone);
  gone_.push_front({pid, node.mapped()->control_group(), node.mapped()->tenant_behind()});
  if (gone_.size() > most_remembered) gone_.pop_back();
  return std::move(node.mapped());
}

}  // namespace firebreak::agent
