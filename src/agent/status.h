// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/descriptor_budget.h"
#include "agent/options.h"
#include "agent/parking.h"
#include "agent/process.h"
#include "agent/spares.h"
#include "agent/surroundings.h"
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
};

/// The document that `firebreak status` prints.
std::string status_json(const StatusSources& of);

}  // namespace firebreak::agent
