// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/process_scan.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "ground/os/descriptors.h"
#include "ground/os/processes.h"
#include "shared/abi/uvm_tools.h"

namespace firebreak::watch {
namespace {

constexpr const char* default_pipe_directory = "/tmp/nvidia-mps";
constexpr const char* default_log_directory = "/var/log/nvidia-mps";

/// A pid that comes back while nobody looks is rare.
constexpr std::uint64_t rounds_until_checked = 64;

std::string proc(pid_t pid, const char* file) { return os::proc_folder(pid) + "/" + file; }

std::string without_line_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

enum class Holds { Nothing, Uvm, Refused };

Holds descriptors_of(os::Kernel& kernel, pid_t pid) {
  const std::string wanted = kernel.uvm_link_target();
  Holds holds = Holds::Nothing;
  const Status visited = os::visit_descriptors(kernel, pid, [&](int, const std::string& target) {
    // A process that watches others has duplicates of their descriptors.
    const bool watches = target == abi::uvm_tools_path;
    if (target == wanted) holds = Holds::Uvm;
    if (watches) holds = Holds::Nothing;
    return !watches;
  });
  if (visited) return holds;
  return visited.error().code == ErrorCode::PermissionDenied ? Holds::Refused : Holds::Nothing;
}

}  // namespace

bool uses_gpu(os::Kernel& kernel, pid_t pid) { return descriptors_of(kernel, pid) == Holds::Uvm; }

ProcessScan::Found ProcessScan::look() {
  ++round_;
  Found found;
  for (const pid_t pid : candidates()) {
    Known& known = known_[pid];
    const Origin origin = origin_of(pid);
    if (known.started != origin.started) known = {.started = origin.started, .told = origin.is_kernel_thread};
    known.last_look = round_;
    if (known.told) continue;
    // Processes that were there before us are not new.
    known.looks = round_ == 1 ? options_.young_looks : known.looks + 1;
    known.told = look_at(pid, known, found);
  }
  return found;
}

void ProcessScan::note_who_is_there() {
  const std::vector<pid_t> pids = os::all_processes(kernel_);
  if (pids.empty()) return;
  std::map<pid_t, Known> before = std::exchange(known_, {});
  for (const pid_t pid : pids) {
    if (pid == options_.ignored_pid) continue;
    Known& known = known_[pid];
    if (const auto was = before.find(pid); was != before.end()) known = std::move(was->second);
  }
}

/// Returns whom to look at in this round: those that were looked at least often, and a share for the old ones
/// in turn.
std::vector<pid_t> ProcessScan::candidates() {
  note_who_is_there();
  using Waiting = std::pair<std::uint64_t, pid_t>;
  std::vector<Waiting> young;
  std::vector<Waiting> old;
  for (const auto& [pid, known] : known_) {
    // The process may be another one by now.
    if (known.told && round_ - known.last_look < rounds_until_checked) continue;
    const bool is_young = !known.told && known.looks < options_.young_looks;
    // Negated: of two the later one, which most likely just started.
    if (is_young) young.emplace_back(known.looks, -pid);
    if (!is_young) old.emplace_back(known.last_look, -pid);
  }
  std::ranges::sort(young);
  std::ranges::sort(old);
  const std::size_t most = round_ == 1 ? young.size() : options_.most_looks;
  const std::size_t turns = std::min(old.size(), std::max<std::size_t>(1, most / 4));
  old.resize(turns);
  young.resize(std::min(young.size(), most - std::min(most, turns)));
  std::vector<pid_t> chosen;
  for (const auto* waiting : {&young, &old}) {
    for (const auto& [key, negated] : *waiting) chosen.push_back(-negated);
  }
  return chosen;
}

ProcessScan::Origin ProcessScan::origin_of(pid_t pid) {
  const std::string fields = kernel_.read_file(proc(pid, "stat")).value_or("");
  return {std::string(os::start_time(fields)), (os::stat_flags(fields) & os::flag_kernel_thread) != 0};
}

/// Returns whether it was told of, or never will be.
bool ProcessScan::look_at(pid_t pid, Known& known, Found& found) {
  // An old process does not become a server.
  if (auto its = known.looks <= options_.young_looks ? server(pid) : std::nullopt) {
    if (is_on_this_gpu(pid)) found.servers.push_back(std::move(*its));
    return true;
  }
  const Holds holds = descriptors_of(kernel_, pid);
  known.refused = holds == Holds::Refused;
  if (holds != Holds::Uvm) return false;
  GpuProcess process = describe(pid);
  if (std::ranges::count(options_.ignored_names, process.name) == 0 && is_on_this_gpu(pid)) {
    found.processes.push_back(std::move(process));
  }
  return true;
}

GpuProcess ProcessScan::describe(pid_t pid) {
  return {pid, without_line_end(kernel_.read_file(proc(pid, "comm")).value_or("")), domain_of(pid)};
}

std::optional<MpsServer> ProcessScan::server(pid_t pid) {
  if (!is_server(pid)) return std::nullopt;
  const std::string environment = os::environment_of(kernel_, pid);
  return MpsServer{pid,
                   os::variable_in(environment, "CUDA_MPS_PIPE_DIRECTORY").value_or(default_pipe_directory),
                   os::variable_in(environment, "CUDA_MPS_LOG_DIRECTORY").value_or(default_log_directory)};
}

bool ProcessScan::is_server(pid_t pid) {
  const Result<std::string> command = kernel_.read_memory_file(proc(pid, "cmdline"));
  if (!command) return false;
  bool server = false;
  int words = 0;
  os::for_each_text(*command, [&](std::string_view word) {
    const std::size_t slash = word.rfind('/');
    if (slash != std::string_view::npos) word.remove_prefix(slash + 1);
    // The program or its first argument: somebody else may well have the name further back.
    if (words++ < 2) server = server || std::ranges::count(options_.server_words, word) > 0;
  });
  return server;
}

bool ProcessScan::is_on_this_gpu(pid_t pid) {
  if (options_.gpu_variable.empty()) return true;
  const Result<std::string> environment = kernel_.read_memory_file(proc(pid, "environ"));
  return environment && os::variable_in(*environment, options_.gpu_variable) == options_.gpu_value;
}

std::string ProcessScan::domain_of(pid_t pid) {
  const std::string environment = os::environment_of(kernel_, pid);
  if (const auto directory = os::variable_in(environment, "CUDA_MPS_PIPE_DIRECTORY")) return *directory;
  // A client without the variable asks the daemon in the usual place, if one is there.
  const auto daemon = kernel_.list_directory(default_pipe_directory);
  return daemon && !daemon->empty() ? default_pipe_directory : "";
}

std::size_t ProcessScan::refused() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(known_, [](const auto& entry) { return entry.second.refused; }));
}

}  // namespace firebreak::watch
