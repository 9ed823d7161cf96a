// SPDX-License-Identifier: Apache-2.0
/// What a container runtime has to give a container so that its programs are a domain's tenants, in the form
/// of the Container Device Interface (github.com/cncf-tags/container-device-interface, SPEC.md). Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "commands/seats/seats.h"
#include "ground/base/result.h"

namespace firebreak::cli {

struct CdiOptions {
  std::vector<seats::SeatDomain> domains;
  seats::CommonGrant common;
  std::optional<gid_t> group;  ///< of the tenants' socket; none: the runtime is told by hand
  std::uint32_t seats = 1;     ///< devices of each domain
};

/// One device for each seat: "a-1". Its version is the lowest that has what is in it, since runtimes refuse
/// those that they do not know. InvalidArgument: a domain's name cannot be a device's; or there is no domain.
Result<nlohmann::ordered_json> cdi_spec(const CdiOptions& options);

}  // namespace firebreak::cli
