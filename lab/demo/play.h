// SPDX-License-Identifier: Apache-2.0
/// A play has what was observed in the demo's acts. It is plain data: judges, printers and drawings only read
/// it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/kernel.h"
#include "shared/abi/wire.h"
#include "stage/fault_report.h"
#include "stage/step_mark.h"

namespace firebreak::demo {

using stage::StepMark;

/// One process from its start to its end.
struct ProcessRecord {
  std::string tenant;
  std::string role;  ///< "active", "standby", "rogue" or "unmodified"
  pid_t pid = 0;
  std::int64_t started_at_ns = 0;
  std::int64_t ended_at_ns = 0;  ///< 0: was still there when the act ended
  std::optional<os::ExitStatus> exit;
  std::vector<StepMark> steps;
  std::string last_words;  ///< the last line on its standard error
};

/// Outcome of one tenant's work.
struct TenantOutcome {
  std::string tenant;
  std::optional<std::uint64_t> output_hash;  ///< FNV-1a, 64 bits; empty: there is no output
  std::uint64_t output_bytes = 0;
  bool same_as_reference = false;  ///< byte for byte
};

/// A program that knows nothing of Firebreak, in the fourth act: `firebreak-checker`, and what it said.
struct Neighbour {
  std::string name;                    ///< "one", "two" or "newcomer"
  std::string domain;                  ///< domain where it was put; empty: nobody said
  std::optional<os::ExitStatus> exit;  ///< empty: it was still there when the act ended
  bool has_counted = false;            ///< true where it lived to say the following
  std::uint64_t launches = 0;          ///< counted launches; every word of the result was compared after each
  std::uint64_t wrong_words = 0;
  double longest_ms = 0;  ///< time from a launch to its result
  std::string error;      ///< CUDA's error; empty: none
};

/// A neighbour with a spare driver instance, which needs no domain that is held.
struct Mover {
  Neighbour program;
  std::string moved_to;          ///< the domain; empty: it did not move
  std::int64_t moved_at_ns = 0;  ///< the moment when the agent knew; 0: it did not
  /// true where it was at work when its old domain had fallen and served again
  bool outlived_domain = false;
  bool is_protected_again = false;
};

/// One exception of the fourth act, and what came of it.
struct ParkedFault {
  std::string fault;                         ///< the kind
  std::string domain;                        ///< domain where the rogue was put
  pid_t rogue = 0;                           ///< 0: it did not start
  std::vector<pid_t> culprits;               ///< processes that the agent named while it held the domain
  std::int64_t named_at_ns = 0;              ///< 0: nobody was
  std::int64_t told_to_end_at_ns = 0;        ///< the neighbours; until then they go on
  std::optional<stage::FaultReport> report;  ///< the rogue's
  std::optional<os::ExitStatus> exit;        ///< the rogue's
  std::vector<Neighbour> neighbours;
  Neighbour newcomer;  ///< came while the domain was held
  Mover mover;
};

enum class Act { Reference = 1, StockMps = 2, Firebreak = 3, Parked = 4 };

struct ActRecord {
  Act act = Act::Reference;
  std::int64_t began_at_ns = 0;
  std::int64_t ended_at_ns = 0;
  std::vector<ProcessRecord> processes;
  std::vector<abi::Event> events;  ///< the agent's, in acts 3 and 4
  std::optional<stage::FaultReport> rogue;
  std::vector<TenantOutcome> outcomes;
  std::string problem;                   ///< reason why the act was not played to its end; empty: none
  bool interrupted = false;              ///< somebody ended us in the middle of it
  std::vector<ParkedFault> parked = {};  ///< filled by act 4
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
  std::vector<std::string> parked_faults = {};  ///< kinds of act 4; empty: it is left out
};

/// "reference", "stock MPS", "Firebreak", "parked".
const char* title(Act act);

/// The recoveries that the third act's events tell of; a tenant without a promotion has none.
std::vector<Recovery> recoveries_of(const ActRecord& act);

}  // namespace firebreak::demo
