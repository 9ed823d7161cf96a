// SPDX-License-Identifier: Apache-2.0
#include "watch/departure.h"

#include <algorithm>
#include <vector>

#include "watch/process_stat.h"

namespace firebreak::watch {
namespace {

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
  if ((stat_flags(*stat) & flag_exiting) != 0) return "is being ended";
  const Result<std::vector<std::string>> numbers = kernel.list_directory(folder + "/fd");
  if (!numbers || numbers->empty()) return std::nullopt;
  if (!holds_uvm(kernel, folder + "/fd", *numbers)) return "has closed the GPU";
  return std::nullopt;
}

}  // namespace firebreak::watch
