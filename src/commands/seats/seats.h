// SPDX-License-Identifier: Apache-2.0
/// What a container has to be given so that its programs are an MPS domain's tenants, in no runtime's own
/// form. Each domain has a number of seats; they are all the same, and schedulers count by them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "shared/link/status_view.h"

namespace firebreak::seats {

/// A path of the host that is in the container, by a bind mount.
struct SeatMount {
  std::string host_path;
  std::string container_path;
  bool is_read_only = false;
  bool has_programs = true;  ///< false: nothing there is to be run
  bool operator==(const SeatMount&) const = default;
};

struct SeatGrant {
  std::vector<std::pair<std::string, std::string>> environment;  ///< name and value
  std::vector<SeatMount> mounts;
  bool operator==(const SeatGrant&) const = default;
};

/// Its directory is at the same place in the container: who compares paths finds them equal.
struct SeatDomain {
  std::string name;
  std::string pipe_directory;
};

/// What is the same for all seats of an agent.
struct CommonGrant {
  std::string tenants_socket;
  std::string guard_library;  ///< empty: tenants are not guarded
  std::string shared_memory;  ///< the host's /dev/shm; empty: the container's own
};

/// What schedulers and runtimes call a seat.
inline constexpr const char* resource_name = "firebreak.dev/seat";
/// Where the guard is in a container, whose own libraries are not to be hidden: as its dynamic linker finds
/// it. That of musl does not know what $LIB is, and passes over it; the guard would end each program there.
inline constexpr const char* guard_path_in_container = "/run/firebreak/$LIB/libfirebreak-guard.so";
/// What distributions have made of $LIB.
inline constexpr std::array guard_folders_in_container{"lib", "lib64", "lib/x86_64-linux-gnu"};
/// The guard as it is mounted for such a folder.
std::string mounted_guard(const std::string& folder);

/// An agent's domain of that name.
SeatDomain domain_at(const std::string& tenants_socket, const std::string& name);
/// The domains of which an agent's status tells.
std::vector<SeatDomain> domains_in(const link::StatusView& status);

/// Of every container that has a seat. Pure, as the next ones.
SeatGrant grant_of_all(const CommonGrant& common);
/// Of one that has a seat there, besides.
SeatGrant grant_of(const SeatDomain& domain);

/// "a-1": the first one's name.
std::string seat_name(std::string_view domain, std::uint32_t number);
/// InvalidArgument: runtimes take no such name for a device.
Status check_domain_name(std::string_view domain);

// What an agent says is not mounted for its word alone: it may have been taken over (firebreakd --user), and
// then it can make files in its own directory, and nothing in root's.

/// PermissionDenied: the tenants' socket does not lie in the directory in which the agent's own socket is.
Status check_tenants_socket(const std::string& tenants_socket, const std::string& agent_socket);
/// PermissionDenied: a domain's folder, or its pipe directory, is a link, or is neither root's nor this
/// process's user's.
Status check_directory(const SeatDomain& domain);

/// The guard that containers load: that one; where none is given, the one that was installed with the running
/// program. Empty: they load none. NotFound: none was installed.
Result<std::string> choose_guard_library(const std::string& given, bool without_guard);

}  // namespace firebreak::seats
