// SPDX-License-Identifier: Apache-2.0
#include "shared/dump_mode/mode.h"

#include <algorithm>
#include <array>
#include <optional>

namespace firebreak::park {
namespace {

constexpr std::string_view enabling_variable = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION";
constexpr std::string_view lightweight_variable = "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP";
constexpr std::string_view prefix_of_others = "CUDA_COREDUMP_";
constexpr std::string_view flags_variable = "CUDA_COREDUMP_GENERATION_FLAGS";
/// Dumps leave these out: with them a dump has all device memory, and takes its clients' time.
constexpr std::string_view flags =
    "skip_abort,skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
    "skip_constbank_memory";

}  // namespace

std::optional<std::string_view> variable_in(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view variable = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(environment.size(), variable.size() + 1));
    if (variable.size() > name.size() && variable.starts_with(name) && variable[name.size()] == '=')
      return variable.substr(name.size() + 1);
  }
  return std::nullopt;
}

Environment mode_environment(const std::string& dump_path) {
  return {{std::string(enabling_variable), "1"},
          {std::string(lightweight_variable), "1"},
          {std::string(dump_file_variable), dump_path},
          {std::string(flags_variable), std::string(flags)}};
}

bool is_of_mode(std::string_view variable) {
  return variable == enabling_variable || variable == lightweight_variable ||
         variable.starts_with(prefix_of_others);
}

std::string dump_path_in(std::string_view environment) {
  const auto path = variable_in(environment, dump_file_variable);
  if (!path) return {};
  for (const auto& [name, value] : mode_environment(std::string(*path))) {
    if (variable_in(environment, name) != value) return {};
  }
  return std::string(*path);
}

}  // namespace firebreak::park
