// SPDX-License-Identifier: Apache-2.0
/// What was observed in the demo's three acts. Plain data: whoever judges, prints or draws it only reads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/wire.h"
#include "os/kernel.h"
#include "stage/fault_report.h"
#include "stage/step_mark.h"

namespace firebreak::demo {

using stage::StepMark;

/// One process from its start to its end.
struct ProcessRecord {
  std::string tenant;
  std::string role;  ///< "active", "standby" or "rogue"
  pid_t pid = 0;
  std::int64_t started_at_ns = 0;
  std::int64_t ended_at_ns = 0;  ///< 0: was still there when the act ended
  std::optional<os::ExitStatus> exit;
  std::vector<StepMark> steps;
  std::string last_words;  ///< the last line on its standard error
};

/// What became of one tenant's work.
struct TenantOutcome {
  std::string tenant;
  std::optional<std::uint64_t> output_hash;  ///< FNV-1a, 64 bits; empty: there is no output
  std::uint64_t output_bytes = 0;
  bool same_as_reference = false;  ///< byte for byte
};

enum class Act { Reference = 1, StockMps = 2, Firebreak = 3 };

struct ActRecord {
  Act act = Act::Reference;
  std::int64_t began_at_ns = 0;
  std::int64_t ended_at_ns = 0;
  std::vector<ProcessRecord> processes;
  std::vector<abi::Event> events;  ///< the agent's, in act 3
  std::optional<stage::FaultReport> rogue;
  std::vector<TenantOutcome> outcomes;
  std::string problem;       ///< what kept the act from being played to its end; empty: nothing
  bool interrupted = false;  ///< somebody ended us in the middle of it
};

/// One tenant's way through the fault of act 3, in milliseconds after the faulting launch.
struct Recovery {
  std::string tenant;
  double detected_ms = 0;       ///< the first detector that named its domain
  std::string detected_by;      ///< "Xid", "UvmEvent", ...
  double promoted_ms = 0;       ///< the agent's decision
  double resumed_ms = 0;        ///< the standby's first kernel had completed
  std::int64_t steps_lost = 0;  ///< committed by the active and not found by the standby
};

struct Play {
  std::string gpu;                 ///< "real" or "soft"
  std::string fault;               ///< the kind
  bool spares_co_clients = false;  ///< a kind that was measured to end nobody but the faulter under stock MPS
  std::string date;
  std::vector<ActRecord> acts;
  std::vector<Recovery> recoveries;
};

/// "reference", "stock MPS", "Firebreak".
const char* title(Act act);

/// The recoveries that the third act's events tell of; a tenant without a promotion has none.
std::vector<Recovery> recoveries_of(const ActRecord& act);

}  // namespace firebreak::demo
