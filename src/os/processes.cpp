// SPDX-License-Identifier: Apache-2.0
#include "os/processes.h"

#include <algorithm>
#include <charconv>

#include "os/process_stat.h"

namespace firebreak::os {
namespace {

std::optional<pid_t> pid_in(std::string_view name) {
  pid_t pid = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
  const bool is_number = parsed.ec == std::errc{} && parsed.ptr == name.data() + name.size();
  return is_number && pid > 0 ? std::optional(pid) : std::nullopt;
}

}  // namespace

std::vector<pid_t> all_processes(Kernel& kernel) {
  std::vector<pid_t> pids;
  for (const std::string& name : kernel.list_directory("/proc").value_or(std::vector<std::string>())) {
    if (const auto pid = pid_in(name)) pids.push_back(*pid);
  }
  return pids;
}

std::vector<pid_t> children_of(Kernel& kernel, pid_t pid) {
  std::vector<pid_t> children;
  const std::string parent = std::to_string(pid);
  for (const pid_t each : all_processes(kernel)) {
    const auto stat = kernel.read_file(proc_folder(each) + "/stat");
    if (stat && os::parent(*stat) == parent) children.push_back(each);
  }
  return children;
}

std::string proc_folder(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::string environment_of(Kernel& kernel, pid_t pid) {
  return kernel.read_file(proc_folder(pid) + "/environ").value_or("");
}

void for_each_text(std::string_view texts, const std::function<void(std::string_view)>& callback) {
  while (!texts.empty()) {
    const std::size_t end = std::min(texts.find('\0'), texts.size());
    callback(texts.substr(0, end));
    texts.remove_prefix(std::min(end + 1, texts.size()));
  }
}

std::optional<std::string> variable_in(std::string_view environment, std::string_view name) {
  std::optional<std::string> value;
  for_each_text(environment, [&](std::string_view text) {
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      value = std::string(text.substr(name.size() + 1));
    }
  });
  return value;
}

}  // namespace firebreak::os
