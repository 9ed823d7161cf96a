// SPDX-License-Identifier: Apache-2.0
/// What a container runtime has to give a container so that its programs are a domain's tenants, in the form
/// of the Container Device Interface (github.com/cncf-tags/container-device-interface, SPEC.md). Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace firebreak::cli {

/// Its directory is at the same place in the container: who compares paths finds them equal.
struct CdiDomain {
  std::string name;
  std::string pipe_directory;
};

struct CdiOptions {
  std::vector<CdiDomain> domains;
  std::string tenants_socket;
  std::string guard_library;   ///< empty: tenants are not guarded
  std::string shared_memory;   ///< the host's /dev/shm; empty: the container's own
  std::optional<gid_t> group;  ///< of the tenants' socket; none: the runtime is told by hand
  std::uint32_t seats = 1;     ///< devices of each domain
};

inline constexpr const char* cdi_kind = "firebreak.dev/seat";
/// Where the guard is in a container, whose own libraries are not to be hidden.
inline constexpr const char* cdi_guard_path = "/run/firebreak/libfirebreak-guard.so";

/// One device for each seat: "a-1". Its version is the lowest that has what is in it, since runtimes refuse
/// those that they do not know. InvalidArgument: a domain's name cannot be a device's; or there is no domain.
Result<nlohmann::ordered_json> cdi_spec(const CdiOptions& options);

}  // namespace firebreak::cli
