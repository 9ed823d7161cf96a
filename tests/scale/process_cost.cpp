// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/process_cost.h"

#include <unistd.h>

#include <sstream>
#include <string>

#include "ground/os/processes.h"

namespace firebreak::scale {
namespace {

std::uint64_t number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return 0;
  std::istringstream rest(text.substr(at + word.size()));
  std::uint64_t number = 0;
  rest >> number;
  return number;
}

/// utime and stime are the 12th and 13th word behind the program's name.
std::uint64_t cpu_ms_of(const std::string& stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream words(stat.substr(name_end + 1));
  std::string word;
  for (int i = 0; i < 11; ++i) words >> word;
  std::uint64_t user = 0, system = 0;
  words >> user >> system;
  return (user + system) * 1000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessCost cost_of(os::Kernel& kernel, pid_t pid) {
  const std::string folder = os::proc_folder(pid);
  const auto names = kernel.list_directory(folder + "/fd");
  const auto status = kernel.read_file(folder + "/status");
  const auto stat = kernel.read_file(folder + "/stat");
  if (!names || !status || !stat) return {};
  return {1, names->size(), number_behind(*status, "VmRSS:"), cpu_ms_of(*stat)};
}

ProcessCost& operator+=(ProcessCost& all, const ProcessCost& one) {
  all.processes += one.processes;
  all.descriptors += one.descriptors;
  all.resident_kib += one.resident_kib;
  all.cpu_ms += one.cpu_ms;
  return all;
}

}  // namespace firebreak::scale
