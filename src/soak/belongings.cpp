// SPDX-License-Identifier: Apache-2.0
#include "soak/belongings.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "os/processes.h"

namespace firebreak::soak {
namespace {

/// What may come once: a reconnected socket, a log that was opened, an allocator's arena.
constexpr std::size_t spare_descriptors = 16;
constexpr std::uint64_t spare_kib = 16 * 1024;

std::size_t count_names(os::Kernel& kernel, const std::string& folder) {
  const auto names = kernel.list_directory(folder);
  return names ? names->size() : 0;
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

Belongings count_belongings(os::Kernel& kernel, pid_t supervisor, pid_t agent) {
  Belongings all;
  all.agent_descriptors = count_names(kernel, os::proc_folder(agent) + "/fd");
  all.agent_resident_kib = resident_kib(kernel, agent);
  all.supervisor_descriptors = count_names(kernel, os::proc_folder(supervisor) + "/fd");
  all.supervisor_resident_kib = resident_kib(kernel, supervisor);
  all.shared_memory_files = count_names(kernel, "/dev/shm");
  return all;
}

std::vector<std::string> leaks(const Belongings& before, const Belongings& after, std::uint32_t faults) {
  std::vector<std::string> lines;
  const auto compare = [&](const char* what, std::uint64_t was, std::uint64_t is, std::uint64_t spare) {
    if (is > was + spare) lines.push_back(fmt::format("{}: {} before, {} after", what, was, is));
  };
  const std::size_t descriptors = std::min<std::size_t>(spare_descriptors, faults / 10 + 1);
  compare("the agent's descriptors", before.agent_descriptors, after.agent_descriptors, descriptors);
  compare("the agent's memory, KiB", before.agent_resident_kib, after.agent_resident_kib, spare_kib);
  compare("the supervisor's descriptors", before.supervisor_descriptors, after.supervisor_descriptors, 0);
  compare("the supervisor's memory, KiB", before.supervisor_resident_kib, after.supervisor_resident_kib,
          spare_kib);
  compare("files in /dev/shm", before.shared_memory_files, after.shared_memory_files, 0);
  compare("tenants", before.tenants, after.tenants, 0);
  return lines;
}

std::vector<pid_t> processes_with(os::Kernel& kernel, const std::string& mark) {
  std::vector<pid_t> found;
  for (const pid_t pid : os::all_processes(kernel)) {
    if (os::environment_of(kernel, pid).find(mark) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace firebreak::soak
