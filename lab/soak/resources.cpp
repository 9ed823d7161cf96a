// SPDX-License-Identifier: Apache-2.0
#include "soak/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "ground/os/processes.h"

namespace firebreak::soak {
namespace {

/// Descriptors that may come once: the MPS servers, which start with the first tenant, a reconnected socket,
/// a log that was opened, an allocator's arena.
constexpr std::size_t spare_descriptors = 8;
constexpr std::uint64_t spare_kib = 16 * 1024;

std::size_t count_names(os::Kernel& kernel, const std::string& folder) {
  const auto names = kernel.list_directory(folder);
  return names ? names->size() : 0;
}

/// "socket:[]", "anon_inode:[pidfd]", "/memfd:name (deleted)".
std::map<std::string, std::size_t> count_descriptors(os::Kernel& kernel, pid_t pid) {
  std::map<std::string, std::size_t> counts;
  const std::string folder = os::proc_folder(pid) + "/fd";
  for (const std::string& name : kernel.list_directory(folder).value_or(std::vector<std::string>())) {
    std::string target = kernel.read_link(folder + "/" + name).value_or("");
    std::erase_if(target, [](char c) { return c >= '0' && c <= '9'; });
    ++counts[target];
  }
  return counts;
}

std::uint64_t resident_kib(os::Kernel& kernel, pid_t pid) {
  const auto status = kernel.read_file(os::proc_folder(pid) + "/status");
  const std::size_t at = status ? status->find("VmRSS:") : std::string::npos;
  if (at == std::string::npos) return 0;
  std::istringstream rest(status->substr(at + 6));
  std::uint64_t kib = 0;
  rest >> kib;
  return kib;
}

}  // namespace

Resources count_resources(os::Kernel& kernel, pid_t supervisor, pid_t agent) {
  Resources all;
  all.agent_descriptors = count_descriptors(kernel, agent);
  all.agent_resident_kib = resident_kib(kernel, agent);
  all.supervisor_descriptors = count_descriptors(kernel, supervisor);
  all.supervisor_resident_kib = resident_kib(kernel, supervisor);
  all.shared_memory_files = count_names(kernel, "/dev/shm");
  return all;
}

std::vector<std::string> leaks(const Resources& before, const Resources& after) {
  std::vector<std::string> lines;
  const auto compare = [&](std::string_view what, std::uint64_t was, std::uint64_t is, std::uint64_t spare) {
    if (is > was + spare) lines.push_back(fmt::format("{}: {} before, {} after", what, was, is));
  };
  using Counts = std::map<std::string, std::size_t>;
  const auto compare_each = [&](std::string_view whose, const Counts& was, const Counts& is,
                                std::uint64_t spare) {
    for (const auto& [target, count] : is) {
      const auto found = was.find(target);
      compare(fmt::format("{} descriptors of {}", whose, target), found == was.end() ? 0 : found->second,
              count, spare);
    }
  };
  compare_each("the agent's", before.agent_descriptors, after.agent_descriptors, spare_descriptors);
  compare("the agent's memory, KiB", before.agent_resident_kib, after.agent_resident_kib, spare_kib);
  compare_each("the supervisor's", before.supervisor_descriptors, after.supervisor_descriptors, 0);
  compare("the supervisor's memory, KiB", before.supervisor_resident_kib, after.supervisor_resident_kib,
          spare_kib);
  compare("files in /dev/shm", before.shared_memory_files, after.shared_memory_files, 0);
  compare("tenants", before.tenants, after.tenants, 0);
  return lines;
}

bool is_ours(os::Kernel& kernel, pid_t pid, const std::string& mark) {
  return os::environment_of(kernel, pid).find(mark) != std::string::npos;
}

std::vector<pid_t> processes_with(os::Kernel& kernel, const std::string& mark) {
  std::vector<pid_t> found;
  for (const pid_t pid : os::all_processes(kernel)) {
    if (is_ours(kernel, pid, mark)) found.push_back(pid);
  }
  return found;
}

}  // namespace firebreak::soak
