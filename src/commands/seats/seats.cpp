// SPDX-License-Identifier: Apache-2.0
#include "commands/seats/seats.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "ground/os/self.h"

namespace firebreak::seats {

SeatDomain domain_at(const std::string& tenants_socket, const std::string& name) {
  return {name, (std::filesystem::path(tenants_socket).parent_path() / name / "pipe").string()};
}

std::vector<SeatDomain> domains_in(const link::StatusView& status) {
  std::vector<SeatDomain> all;
  for (const link::DomainView& domain : status.domains)
    all.push_back(domain_at(status.tenants_socket, domain.name));
  return all;
}

std::string mounted_guard(const std::string& folder) {
  return "/run/firebreak/" + folder + "/libfirebreak-guard.so";
}

SeatGrant grant_of_all(const CommonGrant& common) {
  SeatGrant grant;
  grant.environment.emplace_back("FIREBREAK_SOCKET", common.tenants_socket);
  grant.mounts.push_back({common.tenants_socket, common.tenants_socket});
  if (!common.guard_library.empty()) {
    grant.environment.emplace_back("LD_PRELOAD", guard_path_in_container);
    for (const char* folder : guard_folders_in_container)
      grant.mounts.push_back({common.guard_library, mounted_guard(folder), true});
  }
  if (!common.shared_memory.empty()) grant.mounts.push_back({common.shared_memory, "/dev/shm", false, false});
  return grant;
}

SeatGrant grant_of(const SeatDomain& domain) {
  return {{{"CUDA_MPS_PIPE_DIRECTORY", domain.pipe_directory}},
          {{domain.pipe_directory, domain.pipe_directory}}};
}

std::string seat_name(std::string_view domain, std::uint32_t number) {
  return fmt::format("{}-{}", domain, number);
}

Status check_domain_name(std::string_view domain) {
  const auto is_fit = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.';
  };
  if (!domain.empty() && std::isalnum(static_cast<unsigned char>(domain.front())) != 0 &&
      std::ranges::all_of(domain, is_fit))
    return {};
  return fail(ErrorCode::InvalidArgument, fmt::format("no device can have the name '{}'", domain));
}

Status check_tenants_socket(const std::string& tenants_socket, const std::string& agent_socket) {
  const std::filesystem::path given(tenants_socket);
  const auto directory = std::filesystem::absolute(agent_socket).lexically_normal().parent_path();
  if (given == given.lexically_normal() && given.has_filename() && given.parent_path() == directory)
    return {};
  return fail(ErrorCode::PermissionDenied,
              fmt::format("the agent says that its tenants' socket is {}, which is not in {}", tenants_socket,
                          directory.string()));
}

Status check_directory(const SeatDomain& domain) {
  const std::filesystem::path pipes(domain.pipe_directory);
  for (const auto& each : {pipes.parent_path(), pipes}) {
    struct stat found {};
    const bool is_folder = ::lstat(each.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
    if (is_folder && (found.st_uid == 0 || found.st_uid == ::geteuid())) continue;
    return fail(ErrorCode::PermissionDenied,
                fmt::format("domain {}: {} is no folder of root's", domain.name, each.string()));
  }
  return {};
}

Result<std::string> choose_guard_library(const std::string& given, bool without_guard) {
  if (without_guard || !given.empty()) return given;
  const auto program = os::executable_path();
  if (!program) return propagate(program);
  std::error_code missing;
  const auto library = std::filesystem::canonical(
      std::filesystem::path(*program).parent_path() / "../lib/libfirebreak-guard.so", missing);
  if (!missing) return library.string();
  return fail(ErrorCode::NotFound, "the guard is not installed",
              "install firebreak-preload, or say --no-guard");
}

}  // namespace firebreak::seats
