// SPDX-License-Identifier: Apache-2.0
#include "watch/departure.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace firebreak::watch {
namespace {

/// Linux's PF_EXITING, in the ninth field of /proc/PID/stat.
constexpr unsigned long flag_exiting = 0x4;
constexpr int fields_between_name_and_flags = 6;

/// The field after the name, which may hold spaces and brackets of its own.
std::optional<unsigned long> flags_in(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::size_t at = name_end + 1;
  for (int field = 0; field < fields_between_name_and_flags; ++field) {
    at = stat.find(' ', at + 1);
    if (at == std::string_view::npos) return std::nullopt;
  }
  unsigned long flags = 0;
  const auto parsed = std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), flags);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return flags;
}

bool holds_uvm(os::Kernel& kernel, const std::string& folder, const std::vector<std::string>& numbers) {
  const std::string wanted = kernel.uvm_link_target();
  return std::ranges::any_of(numbers, [&](const std::string& number) {
    const Result<std::string> link = kernel.read_link(folder + "/" + number);
    return link && *link == wanted;
  });
}

}  // namespace

std::optional<std::string> departure_of(os::Kernel& kernel, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const Result<std::string> stat = kernel.read_file(folder + "/stat");
  if (!stat) return std::nullopt;
  const std::optional<unsigned long> flags = flags_in(*stat);
  if (flags && (*flags & flag_exiting) != 0) return "is being ended";
  const Result<std::vector<std::string>> numbers = kernel.list_directory(folder + "/fd");
  if (!numbers || numbers->empty()) return std::nullopt;
  if (!holds_uvm(kernel, folder + "/fd", *numbers)) return "has closed the GPU";
  return std::nullopt;
}

}  // namespace firebreak::watch
