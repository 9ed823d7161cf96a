// SPDX-License-Identifier: Apache-2.0
/// The worth of each source of faults: one row a source (sources.def), and everybody who decides by the
/// source asks the row.
#pragma once

#include <span>

#include "agent/faults/fault/fault.h"

namespace firebreak::fault {

/// Says whether the process in its words is the one that faulted.
enum class NamesCulprit {
  Certainly,  ///< was never seen to be wrong
  Perhaps,    ///< judged by what else it says, and by what others say
  Never,      ///< the source names nobody, or anybody
};

/// Says which of its words tell that a process has left the GPU.
enum class TellsOfDepartures { Always, ByClass, Never };

/// How its signals find the incident that they belong to (agent/faults/fault/merger.cpp).
enum class MergeRule {
  OwnFault,     ///< a process's own memory fault, as UVM has it
  Isolation,    ///< the same, or the end of somebody
  Xid,          ///< judged by the Xid's code
  CoreDump,     ///< a process's own exception
  ServerLog,    ///< the MPS server's words, or the end of a client
  Consequence,  ///< a client shows it after a fault of its domain
  Alone,        ///< none
};

/// Weights that decide which signal's words name the incident: those with the most weight.
struct Weights {
  int fault = 2;
  int departure_as_cause = 2;  ///< weight of a departure, where the incident is of that class
  int departure = 2;           ///< weight of a departure in another incident
};

struct SourceTraits {
  FaultSource source = FaultSource::Xid;
  const char* name = "";  ///< for people, "MPS log"
  const char* key = "";   ///< for programs, "mps_log"; never changed
  NamesCulprit names_culprit = NamesCulprit::Never;
  const char* witness = "";  ///< of a certain one: "the core dump of ", before the process
  /// Its word of a fault that ends_group() proves that nothing of the domain runs on.
  bool is_fence = false;
  bool is_uvm = false;  ///< the driver's memory management says it
  /// Its words have a process and nothing else about it: whoever follows processes says in which domain it
  /// is.
  bool has_process_alone = false;
  TellsOfDepartures departures = TellsOfDepartures::Never;
  MergeRule merges = MergeRule::Alone;
  Weights weights = {};
};

/// Returns one row for each source, in the order of FaultSource.
std::span<const SourceTraits> all_source_traits();

const SourceTraits& traits_of(FaultSource source);

/// The driver says it, of a process that it knows as one on the GPU.
inline bool is_by_driver(FaultSource source) {
  return source == FaultSource::Xid || traits_of(source).is_uvm;
}

}  // namespace firebreak::fault
