// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/placed_environment.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "shared/abi/spare_page.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::cli {
namespace {

/// Of CUDA's and ours what names a domain, a tenant and its limits. CUDA_INJECTION64_PATH and
/// FIREBREAK_CUDA_LIBRARY, for two, name libraries.
constexpr std::array<std::string_view, 12> names{
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_VISIBLE_DEVICES",
    "FIREBREAK_AGENT_RETURNS_MS",
    "FIREBREAK_GPU",
    "FIREBREAK_ROLE",
    "FIREBREAK_SOCKET",
    "FIREBREAK_TENANT",
    "FIREBREAK_TOKEN",
    abi::spare_variable,
};

/// The driver fills in a pattern (%p), so what it opens is another file than one that is called so.
bool is_pipe(const std::string& path) {
  struct stat info {};
  if (!path.starts_with('/') || path.find('%') != std::string::npos) return false;
  return ::lstat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

/// What dumps make no file: each variable of the mode has one value, but for where they go.
bool is_harmless(const std::pair<std::string, std::string>& variable) {
  const auto& [name, value] = variable;
  if (name == abi::spare_dumps_variable) return std::ranges::all_of(abi::spare_pair(value), is_pipe);
  if (name == park::dump_file_variable) return is_pipe(value);
  const auto mode = park::mode_environment("");
  return std::ranges::find(mode, variable) != mode.end();
}

}  // namespace

bool is_of_dumps(const std::string& name) {
  return park::is_of_mode(name) || name == abi::spare_dumps_variable;
}

Environment without_dumps_to_files(Environment placed) {
  const bool is_any = std::ranges::any_of(
      placed, [](const auto& variable) { return is_of_dumps(variable.first) && !is_harmless(variable); });
  if (is_any) std::erase_if(placed, [](const auto& variable) { return is_of_dumps(variable.first); });
  return placed;
}

std::vector<std::string> notes_of_replaced(const Environment& placed, const Environment& own,
                                           const std::vector<std::string>& heeded) {
  std::vector<std::string> notes;
  for (const auto& [name, value] : placed) {
    const auto before = std::ranges::find(own, name, [](const auto& each) { return each.first; });
    const bool is_heeded = std::ranges::count(heeded, name) != 0;
    if (before == own.end() || before->second == value || is_heeded || !name.starts_with("CUDA_")) continue;
    notes.push_back(name + "='" + before->second + "' is not kept: it is '" + value + "' for the tenant");
  }
  return notes;
}

void prefer_own_driver(Environment& placed, const Environment& own) {
  for (auto& [name, value] : placed) {
    const auto found = std::ranges::find(own, name, [](const auto& each) { return each.first; });
    if (name == "LD_LIBRARY_PATH" && found != own.end()) value = found->second;
  }
}

Status check_placed_environment(const Environment& placed, const Environment& own,
                                const std::string& state_variable) {
  for (const auto& variable : placed) {
    if (std::ranges::find(names, variable.first) != names.end()) continue;
    if (std::ranges::find(own, variable) != own.end()) continue;
    if (!state_variable.empty() && variable.first == state_variable) continue;
    if (is_of_dumps(variable.first) && is_harmless(variable)) continue;
    return fail(ErrorCode::PermissionDenied, "the agent wants " + variable.first +
                                                 " in the program's environment, which is not its to say");
  }
  return {};
}

}  // namespace firebreak::cli
