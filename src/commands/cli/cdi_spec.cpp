// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/cdi_spec.h"

#include <fmt/format.h>

namespace firebreak::cli {
namespace {

using json = nlohmann::ordered_json;

/// With additional groups, and without.
constexpr const char* version_with_groups = "0.7.0";
constexpr const char* version_of_mounts = "0.5.0";

json mounts_of(const seats::SeatGrant& grant) {
  json mounts = json::array();
  for (const seats::SeatMount& each : grant.mounts) {
    json options = {"bind", "nosuid", "nodev", each.is_read_only ? "ro" : "rw"};
    if (!each.has_programs) options.push_back("noexec");
    json made;
    made["hostPath"] = each.host_path;
    made["containerPath"] = each.container_path;
    made["options"] = options;
    mounts.push_back(made);
  }
  return mounts;
}

json edits_of(const seats::SeatGrant& grant) {
  json env = json::array();
  for (const auto& [name, value] : grant.environment) env.push_back(fmt::format("{}={}", name, value));
  json edits;
  edits["env"] = env;
  edits["mounts"] = mounts_of(grant);
  return edits;
}

json device(const seats::SeatDomain& domain, std::uint32_t seat) {
  json made;
  made["name"] = seats::seat_name(domain.name, seat);
  made["containerEdits"] = edits_of(seats::grant_of(domain));
  return made;
}

/// Of every container that has a seat.
json common_edits(const CdiOptions& options) {
  json edits = edits_of(seats::grant_of_all(options.common));
  if (options.group) edits["additionalGids"] = json::array({*options.group});
  return edits;
}

}  // namespace

Result<json> cdi_spec(const CdiOptions& options) {
  json devices = json::array();
  for (const seats::SeatDomain& domain : options.domains) {
    if (const Status fit = seats::check_domain_name(domain.name); !fit) return propagate(fit);
    for (std::uint32_t seat = 1; seat <= options.seats; ++seat) devices.push_back(device(domain, seat));
  }
  if (devices.empty()) return fail(ErrorCode::InvalidArgument, "the agent has no domain");
  json spec;
  spec["cdiVersion"] = options.group ? version_with_groups : version_of_mounts;
  spec["kind"] = seats::resource_name;
  spec["devices"] = devices;
  spec["containerEdits"] = common_edits(options);
  return spec;
}

}  // namespace firebreak::cli
