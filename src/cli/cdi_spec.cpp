// SPDX-License-Identifier: Apache-2.0
#include "cli/cdi_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace firebreak::cli {
namespace {

using json = nlohmann::ordered_json;

/// With additional groups, and without.
constexpr const char* version_with_groups = "0.7.0";
constexpr const char* version_of_mounts = "0.5.0";

bool may_be_device(std::string_view name) {
  const auto is_fit = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.';
  };
  return !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
         std::ranges::all_of(name, is_fit);
}

json mount(const std::string& host, const std::string& container, const std::vector<std::string>& more) {
  json options = {"bind", "nosuid", "nodev"};
  for (const std::string& each : more) options.push_back(each);
  json made;
  made["hostPath"] = host;
  made["containerPath"] = container;
  made["options"] = options;
  return made;
}

json device(const CdiDomain& domain, std::uint32_t seat) {
  json edits;
  edits["env"] = json::array({"CUDA_MPS_PIPE_DIRECTORY=" + domain.pipe_directory});
  edits["mounts"] = json::array({mount(domain.pipe_directory, domain.pipe_directory, {"rw"})});
  json made;
  made["name"] = fmt::format("{}-{}", domain.name, seat);
  made["containerEdits"] = edits;
  return made;
}

/// Of every container that has a seat.
json common_edits(const CdiOptions& options) {
  json env = json::array({"FIREBREAK_SOCKET=" + options.tenants_socket});
  json mounts = json::array({mount(options.tenants_socket, options.tenants_socket, {"rw"})});
  if (!options.guard_library.empty()) {
    env.push_back(std::string("LD_PRELOAD=") + cdi_guard_path);
    mounts.push_back(mount(options.guard_library, cdi_guard_path, {"ro"}));
  }
  if (!options.shared_memory.empty())
    mounts.push_back(mount(options.shared_memory, "/dev/shm", {"rw", "noexec"}));
  json edits;
  edits["env"] = env;
  edits["mounts"] = mounts;
  if (options.group) edits["additionalGids"] = json::array({*options.group});
  return edits;
}

}  // namespace

Result<json> cdi_spec(const CdiOptions& options) {
  json devices = json::array();
  for (const CdiDomain& domain : options.domains) {
    if (!may_be_device(domain.name))
      return fail(ErrorCode::InvalidArgument, fmt::format("no device can have the name '{}'", domain.name));
    for (std::uint32_t seat = 1; seat <= options.seats; ++seat) devices.push_back(device(domain, seat));
  }
  if (devices.empty()) return fail(ErrorCode::InvalidArgument, "the agent has no domain");
  json spec;
  spec["cdiVersion"] = options.group ? version_with_groups : version_of_mounts;
  spec["kind"] = cdi_kind;
  spec["devices"] = devices;
  spec["containerEdits"] = common_edits(options);
  return spec;
}

}  // namespace firebreak::cli
