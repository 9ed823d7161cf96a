// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/domains/gpus.h"
#include "agent/endings/hold/holder.h"
#include "agent/loop/surroundings.h"
#include "agent/parking/parking.h"
#include "agent/parking/spares.h"
#include "agent/settings/options.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/descriptor_budget.h"
#include "agent/tenants/process.h"
#include "agent/tenants/shared_weights.h"
#include "agent/tenants/tally.h"
#include "agent/tenants/tenants.h"
#include "agent/tenants/turn_keeper.h"
#include "ground/base/clock.h"

namespace firebreak::agent {

struct StatusSources {
  const AgentOptions& options;
  const Clock& clock;
  const Detectors& detectors;
  const Domains& domains;
  const Tenants& tenants;
  const Processes& processes;
  const hold::Holder& holder;
  const DescriptorBudget& budget;
  const Parking& parking;
  const Spares& spares;
  const Credentials& credentials;
  const Tally& tally;
  const Gpus& gpus;
  const TurnKeeper& turns;
  const SharedWeights& weights;
};

/// The document that `firebreak status` prints. A tenants' connection is shown its user's tenants and their
/// processes, and of the domains what is nobody's: whether they serve, and since which fault.
std::string status_json(const StatusSources& of, const Asking& who);

}  // namespace firebreak::agent
