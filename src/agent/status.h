// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/credentials.h"
#include "agent/descriptor_budget.h"
#include "agent/options.h"
#include "agent/parking.h"
#include "agent/process.h"
#include "agent/spares.h"
#include "agent/surroundings.h"
#include "agent/tally.h"
#include "agent/tenants.h"
#include "base/clock.h"
#include "hold/holder.h"

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
};

/// The document that `firebreak status` prints. A tenants' connection is shown its user's tenants and their
/// processes, and of the domains what is nobody's: whether they serve, and since which fault.
std::string status_json(const StatusSources& of, const Asking& who);

}  // namespace firebreak::agent
