// SPDX-License-Identifier: Apache-2.0
#include "os/process_descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>

namespace firebreak::os {

Status visit_descriptors(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit) {
  return visit_descriptors_in(kernel, "/proc/" + std::to_string(pid) + "/fd", visit);
}

Status visit_descriptors_in(Kernel& kernel, const std::string& directory, const DescriptorVisitor& visit) {
  const auto names = kernel.list_directory(directory);
  if (!names) return propagate(names);
  for (const std::string& name : *names) {
    int number = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc{}) continue;
    const auto target = kernel.read_link(directory + "/" + name);
    if (target && !visit(number, *target)) break;
  }
  return {};
}

std::optional<std::size_t> count_descriptors(Kernel& kernel, pid_t pid) {
  const auto folder = kernel.open("/proc/" + std::to_string(pid) + "/fd", O_RDONLY | O_DIRECTORY);
  struct stat info {};
  if (!folder || ::fstat(folder->get(), &info) != 0 || info.st_size <= 0) return std::nullopt;
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace firebreak::os
