// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/stranger_exit.h"

#include <array>
#include <charconv>
#include <string>

namespace firebreak::watch {
namespace {

/// Linux's struct pidfd_info as of its first version, and the request that fills it; older C library headers
/// have neither.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::array<std::uint32_t, 11> ids;
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long pidfd_get_info = 0xc040ff0b;
constexpr std::uint64_t info_has_exit = 1u << 3;

os::ExitStatus from_code(int code) {
  os::ExitStatus status;
  status.signal = code & 0x7f;
  status.exit_code = status.signal == 0 ? (code >> 8) & 0xff : 0;
  return status;
}

std::optional<int> code_in_procfs(os::Kernel& kernel, pid_t pid) {
  const Result<std::string> line = kernel.read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!line) return std::nullopt;
  const std::size_t begin = line->rfind(' ');  // the exit code is the last field
  int code = 0;
  if (begin == std::string::npos ||
      std::from_chars(line->data() + begin + 1, line->data() + line->size(), code).ec != std::errc{}) {
    return std::nullopt;
  }
  return code;
}

}  // namespace

std::optional<os::ExitStatus> exit_of_stranger(os::Kernel& kernel, const os::Fd& pidfd, pid_t pid) {
  PidfdInfo info{};
  info.mask = info_has_exit;
  if (kernel.ioctl(pidfd, pidfd_get_info, &info) && (info.mask & info_has_exit) != 0) {
    return from_code(info.exit_code);
  }
  // A 0 may also mean that we are not allowed to know.
  const std::optional<int> code = code_in_procfs(kernel, pid);
  if (!code || *code == 0) return std::nullopt;
  return from_code(*code);
}

}  // namespace firebreak::watch
