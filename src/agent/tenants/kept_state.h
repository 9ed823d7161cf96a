// SPDX-License-Identifier: Apache-2.0
/// The state that an agent needs of the one before it, and how it is written down: a document for each tenant
/// and one for all, in memory files that outlive the process. The service manager keeps their descriptors and
/// those of the tenants' pages; shelves (agent/service/shelves.h) have the tenants' memory and their clients'
/// connections.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/domains/gpus.h"
#include "agent/endings/hold/other_holders.h"
#include "agent/service/client_connections.h"
#include "agent/service/service_manager.h"
#include "agent/tenants/counts.h"
#include "agent/tenants/member.h"
#include "agent/tenants/pair/pair.h"
#include "agent/tenants/process.h"
#include "agent/tenants/shared_weights.h"
#include "agent/tenants/vault/vault.h"
#include "ground/base/result.h"
#include "ground/os/memory.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

struct KeptAllocation {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  abi::Memory memory = abi::Memory::State;
  friend bool operator==(const KeptAllocation&, const KeptAllocation&) = default;
};

/// A process of a tenant, and what is known of who else has what it has on the GPU: the next agent has no
/// duplicates of that.
struct KeptProcess {
  pid_t pid = 0;
  std::string domain;
  bool has_left = false;  ///< the process is dead, and in no role any more
  hold::Traces traces;
  Whereabouts where = {};  ///< agents before kept none
  friend bool operator==(const KeptProcess&, const KeptProcess&) = default;
};

struct KeptTenant {
  std::string name;
  std::string token;
  pair::State pair;
  abi::StrayPolicy strays = abi::StrayPolicy::Default;
  bool ended_by_us = false;
  Member active;
  Member standby;
  Member old_active;
  std::vector<KeptProcess> processes = {};  ///< processes of which anything is to be kept
  std::vector<KeptAllocation> allocations;
  std::vector<std::uint64_t> connections = {};  ///< connections of its clients, by their ids
  std::uint64_t last_connection = 0;            ///< the highest id ever given
  std::optional<uid_t> owner = {};              ///< none: agents before 0.8 kept none
  friend bool operator==(const KeptTenant&, const KeptTenant&) = default;
};

/// What a tenant made for others to map; it outlives that tenant.
struct KeptWeights {
  WeightsName name;
  bool is_shared = false;
  std::set<std::string> tenants;
  std::vector<KeptAllocation> pieces;
  friend bool operator==(const KeptWeights&, const KeptWeights&) = default;
};

/// An MPS server that was there: who was its client has no context once it is gone.
struct KeptServer {
  std::string domain;
  pid_t pid = 0;
  std::string start_time;  ///< start time as /proc/PID/stat tells it (os::start_time)
  friend bool operator==(const KeptServer&, const KeptServer&) = default;
};

/// The place where a process was told to run that nobody has adopted yet.
struct KeptPlacement {
  std::string tenant;
  abi::Role role = abi::Role::Active;
  std::string domain;
  mps::ClientLimits limits = {};
  std::string token;
  std::optional<uid_t> owner = {};
  friend bool operator==(const KeptPlacement&, const KeptPlacement&) = default;
};

/// The part of the state that is no single tenant's.
struct KeptCommon {
  std::vector<KeptServer> servers;
  std::vector<KeptPlacement> placements;
  /// Tenants that are no more, and of which a shelf may still have something.
  std::vector<std::string> leaving;
  Counts counts = {};
  std::vector<KeptGpu> gpus = {};  ///< those that are not well
  friend bool operator==(const KeptCommon&, const KeptCommon&) = default;
};

/// A tenant as its document holds it. Allocations are many and only ever come: each is encoded once. The
/// agent asks before each answer, and mostly nothing has changed since (bench/kept_state_benchmark.cpp).
class KeptText {
 public:
  /// `tenant` without allocations and connections, which are in the other two. Until the next call; none: as
  /// last time.
  std::optional<std::string_view> update(const KeptTenant& tenant, std::span<const vault::Entry> allocations,
                                         const ClientConnections& clients);

 private:
  KeptTenant tenant_;
  std::uint64_t client_changes_ = 0;
  std::size_t encoded_ = 0;  ///< allocations
  std::string allocations_;
  std::string text_;
};

/// The same of shared memory.
class KeptWeightsText {
 public:
  std::optional<std::string_view> update(const WeightsName& name, const SharedWeights::Group& group);

 private:
  bool is_shared_ = false;
  std::set<std::string> tenants_;
  std::size_t encoded_ = 0;
  std::string pieces_;
  std::string text_;
};

std::string encode_common(const KeptCommon& common);

/// Checks whether any of these documents is of a newer agent than this one, or of so new a one that not even
/// its file is known: then Unsupported, with what to do. Nothing is changed, and a descriptor that is no
/// document counts for nothing.
Status check_versions(const std::map<std::string, os::Fd>& descriptors);

/// Protocol: it is none of ours, or of another version. An older one lacks fields: they are as if nothing had
/// been kept of them.
Result<KeptTenant> decode_tenant(std::string_view text);
Result<KeptWeights> decode_weights(std::string_view text);
Result<KeptCommon> decode_common(std::string_view text);

/// Two places in one memory file, written in turn: whoever is killed while it writes one leaves the other
/// whole. For one thread.
class KeptDocument {
 public:
  /// A tenant with as many allocations and connections as there can be, and the longest names, needs half.
  static constexpr std::size_t bytes_max = std::size_t{512} << 10;

  static Result<KeptDocument> create();
  /// One that an earlier process made. Protocol: it is none.
  static Result<KeptDocument> open(os::Fd file);

  int descriptor() const { return file_.get(); }
  /// Closes the descriptor; what is mapped can be written without it.
  void close_descriptor() { file_.reset(); }
  /// ResourceExhausted: longer than bytes_max.
  Status write(std::string_view text);
  /// The newest that is whole; empty: none ever was.
  std::string read() const;

 private:
  KeptDocument(os::Fd file, os::Mapping mapping) : file_(std::move(file)), mapping_(std::move(mapping)) {}

  os::Fd file_;
  os::Mapping mapping_;
};

/// Names under which the service manager keeps documents and pages.
std::string document_name();
std::string tenant_document_name(const std::string& tenant);
/// Empty: that is no tenant's document.
std::string tenant_of_document(const std::string& name);
std::string weights_document_name(const WeightsName& name);
bool is_weights_document(const std::string& name);
std::string page_name(const std::string& tenant);
/// Names of shelves' entries. All of a tenant's begin with its folder.
std::string shelf_folder(const std::string& tenant);
std::string memory_name(const std::string& tenant, const std::string& allocation);
/// Stands for the tenant there, where it is shared memory; no tenant is called so.
std::string weights_owner(const WeightsName& name);
bool is_weights_owner(const std::string& owner);
std::string listener_name(const std::string& tenant);
std::string connection_name(const std::string& tenant, std::uint64_t id);

/// Takes a descriptor out of what was kept; none where it was not.
os::Fd take_descriptor(std::map<std::string, os::Fd>& descriptors, const std::string& name);

}  // namespace firebreak::agent
