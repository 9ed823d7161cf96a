// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/attribution.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "agent/faults/fault/source_traits.h"
#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

/// How long before an Xid 31 a death may have caused it: 91-135 ms were measured.
constexpr Nanoseconds death_to_xid = std::chrono::milliseconds(500);

/// Longest time between a fault and the first word of anybody: 245 ms were measured at most, of an ended
/// client.
constexpr Nanoseconds fault_to_first_word = std::chrono::seconds(1);

constexpr int xid_channel_reset = 43;

/// A death leaves behind a fault of the instruction fetch: its Xid 31 says so, and picks any client of the
/// domain for its pid (all eight termination kinds, results/h100/characterization.json).
constexpr std::string_view fetch_client = "GPCCLIENT_GCC";

/// One thing that is known. A clue that names nobody is told as evidence and decides nothing.
struct Clue {
  Confidence confidence = Confidence::Unknown;
  std::optional<pid_t> pid;
  std::string text;
};

std::string process(pid_t pid) { return "process " + std::to_string(pid); }

bool is_mmu(const Fault& fault) {
  return fault.fault_class == FaultClass::MmuReplayable || fault.fault_class == FaultClass::MmuNonReplayable;
}
bool is_mmu_xid(const Fault& fault) { return fault.xid && is_mmu(fault); }
bool is_elsewhere(const WatchedProcess& process, const Gpu& gpu) {
  return !may_be_same(Gpu{.number = process.gpu}, gpu);
}
bool tells_of_a_fault(const Fault& fault) { return traits_of(fault.source).is_uvm && fault.conclusive; }

/// Reads the signals of one incident and collects what they say.
class Judge {
 public:
  Judge(const Incident& incident, const WatchedProcesses& processes, const ClientBook& clients)
      : incident_(incident), processes_(processes), clients_(clients) {
    uvm_spoke_ = std::ranges::any_of(incident.signals, tells_of_a_fault);
  }

  std::vector<Clue> clues() {
    clear_words();
    deaths();
    for (const Fault& signal : incident_.signals) {
      if (is_mmu_xid(signal)) memory_fault(signal);
      if (signal.xid == xid_channel_reset) channel_reset(signal);
    }
    progress();
    the_only_client();
    mps_log();
    return std::move(clues_);
  }

 private:
  const WatchedProcess* watched(std::optional<pid_t> pid) const {
    const auto found = pid ? processes_.find(*pid) : processes_.end();
    return found == processes_.end() ? nullptr : &found->second;
  }
  bool lived(const WatchedProcess& process) const {
    return !process.ended || *process.ended >= incident_.first_seen();
  }
  /// Its UVM events are heard, and there was none: its kernels did not fault.
  bool is_cleared(const WatchedProcess& process) const {
    if (process.uvm_missed && *process.uvm_missed >= earliest()) return false;
    const bool heard_then = process.uvm_heard_until && *process.uvm_heard_until > incident_.first_seen();
    return (process.uvm_heard || heard_then) && !uvm_spoke_;
  }
  /// The culprit may have gone before anybody has said a word of the fault.
  Monotonic earliest() const { return incident_.first_seen() - fault_to_first_word; }
  bool told_by_uvm(pid_t pid) const {
    return std::ranges::any_of(incident_.signals, [&](const Fault& signal) {
      return tells_of_a_fault(signal) && signal.pid == pid;
    });
  }
  std::string stranger_in(const std::string& domain) const;
  bool is_only_client(pid_t pid, const std::string& domain) const;
  void add(Confidence confidence, std::optional<pid_t> pid, std::string text) {
    for (const Clue& clue : clues_) {
      if (clue.text == text) return;
    }
    clues_.push_back({confidence, pid, std::move(text)});
  }

  /// Sources that name the faulting process itself.
  void clear_words() {
    for (const Fault& signal : incident_.signals) {
      const SourceTraits& source = traits_of(signal.source);
      const bool is_sure = source.names_culprit == NamesCulprit::Certainly && signal.conclusive;
      if (!signal.pid || !is_sure) continue;
      add(Confidence::Certain, signal.pid, source.witness + process(*signal.pid) + " says " + signal.kind);
    }
  }

  void deaths();
  Confidence confidence_of_death(const Fault& exit, bool alone) const;
  void memory_fault(const Fault& xid);
  void channel_reset(const Fault& xid);
  void progress();
  void the_only_client();
  void mps_log();

  const Incident& incident_;
  const WatchedProcesses& processes_;
  const ClientBook& clients_;
  bool uvm_spoke_ = false;
  std::vector<Clue> clues_;
};

/// Why a client of the domain may be unwatched, in words; empty: none is, or nobody can be asked.
std::string Judge::stranger_in(const std::string& domain) const {
  const auto book = clients_.find(domain);
  if (book == clients_.end()) return {};
  const DomainClients& clients = book->second;
  if (!clients.asked || *clients.asked < incident_.first_seen()) {
    return "who else is a client of domain " + domain + " is not known";
  }
  const auto unwatched = [&](pid_t pid) {
    return process(pid) + ", a client of domain " + domain + ", was not watched";
  };
  for (const pid_t pid : clients.present) {
    if (!watched(pid)) return unwatched(pid);
  }
  for (const auto& [pid, until] : clients.others) {
    if (until >= earliest() && !watched(pid)) return unwatched(pid);
  }
  return {};
}

/// Whoever is watched and was there counts too, whatever MPS says of it.
bool Judge::is_only_client(pid_t pid, const std::string& domain) const {
  const auto book = clients_.find(domain);
  if (book == clients_.end() || !stranger_in(domain).empty()) return false;
  const DomainClients& clients = book->second;
  if (!clients.present.contains(pid) && !clients.others.contains(pid)) return false;
  const bool alone_in_list =
      std::ranges::all_of(clients.present, [&](pid_t other) { return other == pid; }) &&
      std::ranges::all_of(clients.others,
                          [&](const auto& other) { return other.first == pid || other.second < earliest(); });
  return alone_in_list && std::ranges::all_of(processes_, [&](const auto& entry) {
           const WatchedProcess& other = entry.second;
           const bool was_there = !other.ended || *other.ended >= earliest();
           return entry.first == pid || other.domain != domain || is_elsewhere(other, incident_.gpu) ||
                  !was_there;
         });
}

/// Finds who left the GPU before anything else showed: of each process the word that says most.
std::map<pid_t, const Fault*> first_to_leave(const Incident& incident) {
  std::map<pid_t, const Fault*> leavers;
  for (const Fault& signal : incident.signals) {
    if (!is_departure(signal)) break;
    if (!signal.pid) continue;
    const Fault*& known = leavers[*signal.pid];
    if (!known || (signal.conclusive && !known->conclusive)) known = &signal;
  }
  return leavers;
}

void Judge::deaths() {
  if (uvm_spoke_ || incident_.fault_class != FaultClass::Termination) return;
  const std::map<pid_t, const Fault*> leavers = first_to_leave(incident_);
  for (const auto& [pid, leaver] : leavers) {
    add(confidence_of_death(*leaver, leavers.size() == 1), pid,
        process(pid) + " left the GPU (" + leaver->kind + ") before anything else was seen");
    if (is_only_exits(incident_)) continue;
    if (std::string stranger = stranger_in(leaver->domain); !stranger.empty()) {
      add(Confidence::Unknown, {}, std::move(stranger));
    }
  }
}

Confidence Judge::confidence_of_death(const Fault& exit, bool alone) const {
  if (!alone) return Confidence::Unknown;
  if (is_only_exits(incident_)) return Confidence::Certain;
  bool others_cleared = true;
  for (const auto& [pid, other] : processes_) {
    const bool same_domain = other.domain == exit.domain || other.domain.empty() || exit.domain.empty();
    if (pid == exit.pid || is_elsewhere(other, exit.gpu) || !same_domain || !lived(other)) continue;
    others_cleared = others_cleared && is_cleared(other);
  }
  bool names_another = false;
  bool is_fetch = false;
  for (const Fault& signal : incident_.signals) {
    if (!signal.xid) continue;
    const bool watched_one = watched(signal.pid) != nullptr;
    // The graphics engine's line may name anybody under MPS, and so also who has just left.
    const WatchedProcess* its = watched(exit.pid);
    const bool names_it =
        names_its_client(signal) || (its == nullptr ? exit.domain.empty() : is_without_mps(*its));
    if (watched_one && signal.pid == exit.pid && names_it) return Confidence::Certain;
    const bool fetch = signal.place.find(fetch_client) != std::string::npos;
    is_fetch = is_fetch || fetch;
    names_another = names_another || (watched_one && signal.pid != exit.pid && !fetch);
  }
  // One that nobody watches may have died as well, and nobody would have told.
  if (!stranger_in(exit.domain).empty()) return Confidence::Unknown;
  if (others_cleared && (exit.conclusive || is_fetch)) return Confidence::Certain;
  // Killed, and the Xid names nobody who lives (or only as the fetch fault does, which picks anybody).
  return exit.conclusive && !names_another ? Confidence::Certain : Confidence::Unknown;
}

void Judge::memory_fault(const Fault& xid) {
  const WatchedProcess* named = watched(xid.pid);
  if (!named) {
    if (xid.pid)
      add(Confidence::Unknown, {}, xid.kind + " names " + process(*xid.pid) + ", which is not watched");
    return;
  }
  const std::string says =
      xid.kind + (xid.place.empty() ? "" : " of " + xid.place) + " names " + process(named->pid);
  if (names_its_client(xid)) return add(Confidence::Certain, xid.pid, says);
  if (told_by_uvm(named->pid)) return add(Confidence::Probable, xid.pid, says);
  if (is_cleared(*named)) return add(Confidence::Unknown, {}, says + ", but UVM told of no fault of it");
  if (!is_without_mps(*named)) {
    return add(Confidence::Unknown, {},
               says + "; under MPS the graphics engine's Xid was seen to name an innocent");
  }
  add(Confidence::Probable, xid.pid, says);
}

/// The line names the server under MPS: that it named a client was never seen, and so proves nothing.
void Judge::channel_reset(const Fault& xid) {
  const WatchedProcess* named = watched(xid.pid);
  if (!named || incident_.fault_class != FaultClass::Sm) return;
  const bool has_own_channel = is_without_mps(*named);
  add(has_own_channel ? Confidence::Certain : Confidence::Unknown, has_own_channel ? xid.pid : std::nullopt,
      "Xid 43 names " + process(named->pid) + " as the owner of the channel that was reset");
}

void Judge::progress() {
  std::optional<pid_t> first;
  bool several = false;
  for (const Fault& signal : incident_.signals) {
    if (signal.source != FaultSource::Progress) {
      if (first) break;
      return;
    }
    several = several || (first && signal.pid != first);
    first = signal.pid;
  }
  if (!first) return;
  // A neighbour's fault stops all of its domain, and who is seen first says nothing.
  const WatchedProcess* its = watched(first);
  const bool is_alone = its && (is_without_mps(*its) || is_only_client(*first, its->domain));
  const bool names = !several && is_alone;
  add(names ? Confidence::Probable : Confidence::Unknown, names ? first : std::nullopt,
      "the progress of " + process(*first) + " stopped before any other sign");
}

void Judge::the_only_client() {
  const bool fits =
      incident_.fault_class == FaultClass::Sm || incident_.fault_class == FaultClass::MmuReplayable;
  if (!fits || incident_.domain.empty()) return;
  if (std::string stranger = stranger_in(incident_.domain); !stranger.empty()) {
    return add(Confidence::Unknown, {}, std::move(stranger));
  }
  for (const auto& [pid, candidate] : processes_) {
    if (candidate.domain != incident_.domain || !is_only_client(pid, incident_.domain)) continue;
    if (incident_.fault_class != FaultClass::Sm && is_cleared(candidate)) continue;
    add(Confidence::Probable, pid, process(pid) + " is the only client of domain " + incident_.domain);
  }
}

void Judge::mps_log() {
  for (const Fault& signal : incident_.signals) {
    if (signal.source != FaultSource::MpsLog || is_departure(signal) || !signal.pid) continue;
    add(Confidence::Unknown, {},
        "the MPS log names " + process(*signal.pid) + "; it was seen to name the wrong client");
  }
}

/// The process that all clues of the best confidence name; empty where they differ.
std::optional<pid_t> agreed(const std::vector<Clue>& clues, Confidence best) {
  std::optional<pid_t> pid;
  for (const Clue& clue : clues) {
    if (clue.confidence != best) continue;
    if (pid && clue.pid != pid) return std::nullopt;
    pid = clue.pid;
  }
  return pid;
}

}  // namespace

bool names_its_client(const Fault& fault) {
  if (traits_of(fault.source).names_culprit != NamesCulprit::Perhaps || !is_mmu_xid(fault)) return false;
  const std::string engine = fault.place.substr(0, fault.place.find(' '));
  return engine.starts_with("CE") || engine.find("PBDMA") != std::string::npos || engine.starts_with("HOST");
}

bool is_only_exits(const Incident& incident) { return std::ranges::all_of(incident.signals, is_departure); }

FaultClass classify(const Incident& incident) {
  const auto has = [&](FaultClass wanted) {
    return std::ranges::any_of(incident.signals,
                               [&](const Fault& signal) { return signal.fault_class == wanted; });
  };
  const bool uvm = std::ranges::any_of(incident.signals, tells_of_a_fault);
  const bool follows_device = std::ranges::any_of(incident.signals, [](const Fault& signal) {
    return signal.follows_xid && find_xid(*signal.follows_xid).fault_class == FaultClass::Device;
  });
  if (has(FaultClass::Device) || follows_device) return FaultClass::Device;
  if (!uvm && !has(FaultClass::Sm) && !incident.signals.empty() && is_departure(incident.signals.front())) {
    const auto next = std::ranges::find_if_not(incident.signals, is_departure);
    if (next == incident.signals.end() || next->when - incident.first_seen() <= death_to_xid) {
      return FaultClass::Termination;
    }
  }
  for (const FaultClass candidate :
       {FaultClass::MmuNonReplayable, FaultClass::MmuReplayable, FaultClass::Sm}) {
    if (has(candidate)) return candidate;
  }
  return has(FaultClass::Termination) ? FaultClass::Termination : FaultClass::Unknown;
}

Culprit attribute(const Incident& incident, const WatchedProcesses& processes, const ClientBook& clients) {
  Culprit culprit;
  if (incident.fault_class == FaultClass::Device) {
    culprit.evidence.push_back("a fault of the GPU itself has no culprit");
    return culprit;
  }
  std::vector<Clue> clues = Judge(incident, processes, clients).clues();
  Confidence best = Confidence::Unknown;
  for (const Clue& clue : clues) best = std::max(best, clue.confidence);
  if (best != Confidence::Unknown) culprit.pid = agreed(clues, best);
  if (culprit.pid) {
    culprit.confidence = best;
    const auto found = processes.find(*culprit.pid);
    if (found != processes.end()) culprit.tenant = found->second.tenant;
  }
  std::ranges::stable_sort(clues, std::ranges::greater{}, &Clue::confidence);
  for (Clue& clue : clues) culprit.evidence.push_back(std::move(clue.text));
  if (best != Confidence::Unknown && !culprit.pid)
    culprit.evidence.push_back("these name different processes");
  if (culprit.evidence.empty()) culprit.evidence.push_back("no signal names a client");
  return culprit;
}

}  // namespace firebreak::fault
