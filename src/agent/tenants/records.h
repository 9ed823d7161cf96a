// SPDX-License-Identifier: Apache-2.0
/// The records that the agent writes for the next one: a document for each tenant and one for all
/// (agent/tenants/kept_state.h), which the service manager keeps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/endings/hold/holder.h"
#include "agent/loop/server.h"
#include "agent/service/service_manager.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/kept_state.h"
#include "agent/tenants/placements.h"
#include "agent/tenants/process.h"
#include "agent/tenants/shared_weights.h"
#include "agent/tenants/tally.h"
#include "agent/tenants/tenants.h"
#include "agent/tenants/warm_standbys.h"
#include "ground/base/clock.h"
#include "ground/os/fd.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. Where nobody keeps anything for us it does nothing.
class Records {
 public:
  struct Knows {
    ServiceManager& manager;
    Tenants& tenants;
    Processes& processes;
    hold::Holder& holder;
    Credentials& credentials;
    Placements& placements;
    WarmStandbys& warm_standbys;
    const Tally& tally;
    const Gpus& gpus;
    const SharedWeights& weights;
  };
  /// `returns_within`: how long processes wait for the next agent.
  Records(Knows knows, Milliseconds returns_within) : at_(knows), returns_within_(returns_within) {}

  /// Takes up what the agent before wrote down, out of all that was kept; these documents are written on.
  KeptCommon take_up_common(std::map<std::string, os::Fd>& descriptors);
  /// Takes up every tenant whose document can be read.
  std::vector<KeptTenant> take_up_tenants(std::map<std::string, os::Fd>& descriptors);
  /// The same of shared memory.
  std::vector<KeptWeights> take_up_weights(std::map<std::string, os::Fd>& descriptors);
  /// Begins to write everything down. False: nobody keeps anything for us, as for an agent that was started
  /// by hand.
  bool begin();

  void save();
  void save(const Tenant& tenant);
  /// Saves all shared memory.
  void save_weights();
  /// Saves the rest, which is no single tenant's.
  void save_counts() { save_common(); }
  /// Saves what a tenant's process asked for, which changes that tenant alone.
  void save_for(const Connection& connection);
  /// Its document is written anew whatever it holds.
  void forget_text_of(const std::string& tenant);
  void forget(const std::string& tenant);
  void forget(const WeightsName& name);
  /// Its document is written anew whatever it holds.
  void forget_text_of(const WeightsName& name);
  /// Notes that it is to be no more, and that a shelf is told so: until it has heard it the next agent tells
  /// it, too.
  void leaves(const std::string& tenant);
  void has_left(const std::string& tenant);

  /// Nothing is kept from now on, nor is what was: there is to be no next agent.
  void end();

  /// Checks whether what is kept of a new tenant has room.
  Status room_for_tenant(const std::string& tenant) const;
  Status room_for_weights(const WeightsName& name) const;
  /// Something that is no document.
  void keep(const std::string& name, int descriptor);
  bool are_kept() const { return document_.has_value(); }
  /// How long who joins is to wait for the next agent; 0: there is none that knows of it.
  std::uint32_t returns_ms() const;

 private:
  struct TenantDocument {
    KeptDocument document;
    KeptText text;  ///< text of what it holds
  };

  struct WeightsDocument {
    KeptDocument document;
    KeptWeightsText text;
  };

  void save_common();
  void save(const WeightsName& name, const SharedWeights::Group& group);
  KeptTenant kept_of(const Tenant& tenant) const;
  std::vector<KeptProcess> kept_processes_of(const Tenant& tenant) const;

  Knows at_;
  Milliseconds returns_within_;
  std::optional<KeptDocument> document_;  ///< none: nobody keeps anything for us
  std::map<std::string, TenantDocument> tenant_documents_;
  std::map<WeightsName, WeightsDocument> weights_documents_;
  std::optional<KeptCommon> written_common_;
  std::multiset<std::string> leaving_;  ///< names that leave, once for each that was of that name
};

}  // namespace firebreak::agent
