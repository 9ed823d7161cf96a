// SPDX-License-Identifier: Apache-2.0
/// Judges who caused a fault, from all signals of it. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/faults/fault/incident.h"
#include "ground/base/clock.h"

namespace firebreak::fault {

/// A process that is watched, as far as it matters for who is to blame.
struct WatchedProcess {
  pid_t pid = 0;
  std::optional<std::uint32_t> gpu = {};  ///< GPU as Gpu::number
  std::string domain;                     ///< empty: not known, or no MPS domain
  bool may_be_client = false;             ///< where its domain is not known: it may be in one
  std::optional<std::string> tenant;
  Monotonic since = Monotonic::min();  ///< it had nothing on the GPU before
  bool uvm_heard = false;  ///< its UVM events are listened to, so that silence means something
  std::optional<Monotonic> uvm_heard_until;  ///< time when that was over: the process ended, or its queue did
  std::optional<Monotonic> uvm_missed;       ///< time when some of them were last known to be lost
  std::optional<Monotonic> ended;            ///< time when its end was seen
  std::optional<Monotonic> struck_until;     ///< a fault reached it: until then its end is no news of its own
};

/// Then each channel is its own, and who names one names its process.
inline bool is_without_mps(const WatchedProcess& process) {
  return process.domain.empty() && !process.may_be_client;
}

using WatchedProcesses = std::map<pid_t, WatchedProcess>;

/// The clients of an MPS domain by MPS's list, whether or not anybody watches them, and those of lately.
struct DomainClients {
  std::optional<Monotonic> asked;     ///< time when MPS was asked for the list; empty: it has never answered
  std::set<pid_t> present;            ///< clients on the list
  std::map<pid_t, Monotonic> others;  ///< time until when, at the latest, those were clients that it does not
                                      ///< name
};

/// Clients by domain. A domain that is not in it cannot be asked for its clients.
using ClientBook = std::map<std::string, DomainClients>;

/// The culprit of `incident`, judged anew from its signals:
///   - a device fault has none;
///   - certain: a UVM event's process and a core dump's (they were never seen to be wrong), a watched process
///     that an Xid 31 of a copy engine or PBDMA names, and the one process that left the GPU before the Xid
///     31 which its death left behind, where no client of its domain is unwatched as far as MPS can be asked;
///   - at most probable: without MPS the process that an Xid 31 of the graphics engine names (under MPS it
///     names an innocent in most runs), and the first whose progress stopped; the only client of its domain,
///     by a list that MPS was asked for since and with those who have just left;
///   - else unknown. Every line of evidence is kept, also where it was not enough.
Culprit attribute(const Incident& incident, const WatchedProcesses& processes,
                  const ClientBook& clients = {});

/// Returns what happened: the class, as the signals and the culprit's death make it.
FaultClass classify(const Incident& incident);

/// True when `incident` consists of processes that left the GPU and nothing else.
bool is_only_exits(const Incident& incident);

/// An Xid 31 of an engine that has its own channel per client: copy engine, PBDMA.
bool names_its_client(const Fault& fault);

}  // namespace firebreak::fault
