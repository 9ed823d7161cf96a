// SPDX-License-Identifier: Apache-2.0
#include "tests/guard/memory_group.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace firebreak::tests {
namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

}  // namespace

Result<MemoryGroup> MemoryGroup::create(std::size_t limit_mib) {
  const std::string limit = std::to_string(limit_mib << 20);
  // Version 1 has a hierarchy for memory alone, version 2 one for everything.
  for (const auto& [root, file] : {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                                   std::pair("/sys/fs/cgroup", "memory.max")}) {
    std::error_code error;
    const std::string path = std::string(root) + "/firebreak-test-" + std::to_string(::getpid());
    if (!std::filesystem::create_directory(path, error)) continue;
    MemoryGroup group(path);
    if (write(path + "/" + file, limit)) return group;
  }
  return fail(ErrorCode::Unsupported, "no memory cgroup can be made here");
}

MemoryGroup::~MemoryGroup() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove(path_, error);
}

Status MemoryGroup::take_in(pid_t pid) const {
  if (write(path_ + "/cgroup.procs", std::to_string(pid))) return {};
  return fail(ErrorCode::Internal, "process " + std::to_string(pid) + " was not taken in");
}

}  // namespace firebreak::tests
