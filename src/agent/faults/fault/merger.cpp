// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/merger.h"

#include <algorithm>
#include <utility>

#include "agent/faults/fault/source_traits.h"
#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

/// The MMU reports and UVM handles whole pages of this size.
constexpr unsigned page_bits = 12;

constexpr int xid_preemptive_removal = 45;
constexpr int xid_channel_reset = 43;

// How strongly a signal belongs to an incident; the sum decides between several.
constexpr int same_address = 8;
constexpr int same_process = 4;
constexpr int same_domain = 2;
constexpr int same_kind = 2;
constexpr int nothing_against = 1;

bool is_mmu(FaultClass fault_class) {
  return fault_class == FaultClass::MmuReplayable || fault_class == FaultClass::MmuNonReplayable;
}

template <class Predicate>
bool any_signal(const Incident& incident, Predicate predicate) {
  return std::ranges::any_of(incident.signals, predicate);
}

bool has_source(const Incident& incident, FaultSource source) {
  return any_signal(incident, [&](const Fault& signal) { return signal.source == source; });
}
/// True when UVM tells it, by its events or by its isolation, which name the process itself.
bool is_told_by_uvm(const Fault& signal) { return traits_of(signal.source).is_uvm; }
bool is_told_of_by_uvm(const Incident& incident, std::optional<pid_t> pid) {
  return any_signal(incident, [&](const Fault& s) { return is_told_by_uvm(s) && s.pid && s.pid == pid; });
}
bool involves(const Incident& incident, std::optional<pid_t> pid) {
  return any_signal(incident, [&](const Fault& signal) { return signal.pid && signal.pid == pid; });
}
bool has_xid(const Incident& incident, int code) { return std::ranges::count(incident.xids, code) > 0; }
bool has_address(const Incident& incident) {
  return any_signal(incident, [](const Fault& signal) { return signal.address.has_value(); });
}
bool has_page_of(const Incident& incident, const Fault& signal) {
  return signal.address && any_signal(incident, [&](const Fault& other) {
           return other.address && (*other.address >> page_bits) == (*signal.address >> page_bits);
         });
}

/// NVIDIA's documentation does not say what follows from it, and nothing was seen to.
bool says_little(const Incident& incident) {
  return std::ranges::all_of(incident.xids,
                             [](int code) { return find_xid(code).action == XidAction::Unspecified; });
}

/// True when it names that process, and was never seen to mean another by it: without MPS, or by an engine
/// that has a channel for each client.
bool is_sure_of(const WatchedProcess& process, const Fault& signal) {
  if (signal.pid != process.pid || !signal.conclusive || is_departure(signal)) return false;
  return is_without_mps(process) || signal.fault_class == FaultClass::Device || names_its_client(signal) ||
         traits_of(signal.source).names_culprit == NamesCulprit::Certainly;
}

/// True when whoever it reaches has nothing on the GPU any more.
bool takes_contexts_along(const Fault& signal) {
  return signal.conclusive && (ends_group(signal) || signal.needs > DeviceNeed::Nothing);
}

/// The relation of two signals; the rules below decide by it.
struct Relation {
  const Incident& incident;
  const Fault& signal;
  bool domains_fit;   ///< equal, or one is not known
  bool domain_equal;  ///< equal and known
  bool process;       ///< the signal's process was named before

  Relation(const Incident& i, const Fault& s)
      : incident(i),
        signal(s),
        domains_fit(i.domain.empty() || s.domain.empty() || i.domain == s.domain),
        domain_equal(!s.domain.empty() && i.domain == s.domain),
        process(involves(i, s.pid)) {}

  int ties() const { return (domain_equal ? same_domain : 0) + (process ? same_process : 0); }
};

using Score = std::optional<int>;

Score score_if(bool fits, int score) { return fits ? Score(score) : std::nullopt; }

/// A process's own memory fault: the next of the same process, or the one that an Xid told of before.
Score fit_uvm(const Relation& of) {
  const Incident& incident = of.incident;
  if (any_signal(incident, is_told_by_uvm)) {
    return score_if(is_told_of_by_uvm(incident, of.signal.pid), same_address + of.ties());
  }
  if (is_only_exits(incident) || has_source(incident, FaultSource::CoreDump)) {
    return score_if(of.process, of.ties());
  }
  if (incident.fault_class == FaultClass::Unknown) return score_if(of.process, of.ties());
  if (!is_mmu(incident.fault_class) || !of.domains_fit) return std::nullopt;
  if (has_page_of(incident, of.signal)) return same_address + of.ties();
  return score_if(!has_address(incident) || of.process, nothing_against + of.ties());
}

/// An Xid of the MMU, or NVML's echo of one, which has the code alone.
Score fit_mmu_xid(const Relation& of) {
  const Incident& incident = of.incident;
  if (!of.domains_fit) return std::nullopt;
  if (is_only_exits(incident)) {
    const bool sure = any_signal(incident, [](const Fault& exit) { return exit.conclusive; });
    // A process that is known to be in no domain took nobody with it.
    const bool fits = of.process || of.domain_equal || (incident.domain.empty() == of.signal.domain.empty());
    return score_if(fits || of.signal.domain.empty(), of.ties() + (sure ? nothing_against : 0));
  }
  if (incident.fault_class == FaultClass::Termination) {
    if (has_xid(incident, *of.signal.xid) || of.ties() > 0) return same_kind + of.ties();
    // A departure and the server's word: what it handles may well be this, of which NVML may tell first.
    return score_if(incident.xids.empty(), 0);
  }
  if (incident.fault_class == FaultClass::Unknown) return nothing_against + of.ties();
  if (!is_mmu(incident.fault_class)) return std::nullopt;
  if (has_page_of(incident, of.signal)) return same_address + of.ties();
  if (!of.signal.address) return same_kind + of.ties();
  const bool first_xid = !has_xid(incident, *of.signal.xid);
  return score_if(!has_address(incident) || of.process || (first_xid && of.domain_equal), of.ties());
}

/// A channel belongs to one process. A domain that has fallen has another server once it serves again.
bool resets_channel_of_another(const Incident& incident, const Fault& signal) {
  if (signal.xid != xid_channel_reset || !signal.pid) return false;
  return any_signal(
      incident, [&](const Fault& s) { return s.xid == xid_channel_reset && s.pid && s.pid != signal.pid; });
}

/// Xid 13, 43 and their like. Xid 13 names no process; Xid 43 names the MPS server, and so the domain.
Score fit_sm_xid(const Relation& of) {
  const Incident& incident = of.incident;
  if (!of.domains_fit || resets_channel_of_another(incident, of.signal)) return std::nullopt;
  if (incident.fault_class == FaultClass::Sm) return same_kind + of.ties();
  if (incident.fault_class == FaultClass::Unknown) return nothing_against + of.ties();
  if (incident.fault_class == FaultClass::Termination && incident.xids.empty() && !is_only_exits(incident)) {
    return of.ties();  // a departure and the server's word: what it handles may well be this
  }
  const bool follows = of.signal.xid == xid_channel_reset && !is_only_exits(incident);
  return score_if((follows && of.domain_equal) || of.process, of.ties());
}

/// Channels that were cleared away, exceptions of other engines.
Score fit_other_xid(const Relation& of) {
  if (!of.domains_fit) return std::nullopt;
  if (of.signal.xid == xid_preemptive_removal) {
    return score_if(!is_only_exits(of.incident) || of.ties() > 0, nothing_against + of.ties());
  }
  return score_if(has_xid(of.incident, *of.signal.xid) || of.ties() > 0, nothing_against + of.ties());
}

Score fit_xid(const Relation& of) {
  if (is_mmu(of.signal.fault_class)) return fit_mmu_xid(of);
  if (of.signal.fault_class == FaultClass::Sm) return fit_sm_xid(of);
  return fit_other_xid(of);
}

/// A client that ended, saw a CUDA error or stands still after a fault of its domain.
Score fit_consequence(const Relation& of) {
  const Incident& incident = of.incident;
  if (is_only_exits(incident)) return score_if(of.process, of.ties());
  const bool both_unknown = incident.domain.empty() && of.signal.domain.empty() && !incident.culprit.pid;
  return score_if(of.ties() > 0 || both_unknown, nothing_against + of.ties());
}

/// An exception of somebody else is another fault, also where its process has been named as one that fell
/// with the first one's domain.
Score fit_core_dump(const Relation& of) {
  if (!of.domains_fit || is_only_exits(of.incident)) return std::nullopt;
  const bool names_another = any_signal(of.incident, [&](const Fault& signal) {
    return signal.source == FaultSource::CoreDump && signal.pid != of.signal.pid;
  });
  if (names_another) return std::nullopt;
  if (of.process) return of.ties();
  if (any_signal(of.incident, is_told_by_uvm)) return std::nullopt;
  return score_if(!is_mmu(of.incident.fault_class), nothing_against + of.ties());
}

/// True also for what the driver has cleared away after it.
bool is_of_device(const Fault& signal) {
  const auto cause = signal.follows_xid ? find_xid(*signal.follows_xid).fault_class : signal.fault_class;
  return cause == FaultClass::Device;
}

/// Everything may follow from a broken GPU but a fault of somebody's own.
Score fit_device(const Relation& of) {
  if (is_of_device(of.signal)) return same_kind;
  const bool own_fault = is_told_by_uvm(of.signal) || is_mmu(of.signal.fault_class);
  return score_if(!own_fault && !says_little(of.incident), nothing_against);
}

/// A word about the GPU by which nothing is wrong, as far as is known.
bool is_aside(const Fault& signal) {
  return signal.is_notice || (signal.fault_class == FaultClass::Device && !signal.conclusive);
}

bool is_overflow(const Fault& signal) { return signal.source == FaultSource::UvmEvent && !signal.conclusive; }

/// A lost page fault may have been of any fault that is under way.
Score fit_overflow(const Relation& of) {
  return score_if(of.domains_fit && !is_only_exits(of.incident), of.ties());
}

/// The module does not know of some faults whose they are.
Score fit_isolation(const Relation& of) {
  if (is_departure(of.signal)) return fit_consequence(of);
  return of.signal.pid ? fit_uvm(of) : fit_overflow(of);
}

/// The server may handle what a departure left behind.
Score fit_server_log(const Relation& of) {
  if (is_departure(of.signal)) return fit_consequence(of);
  if (is_only_exits(of.incident)) return score_if(of.domain_equal, of.ties());
  return score_if(of.domains_fit, nothing_against + of.ties());
}

Score fit_by_source(const Relation& of) {
  if (is_overflow(of.signal)) return fit_overflow(of);
  switch (traits_of(of.signal.source).merges) {
    case MergeRule::OwnFault:
      return fit_uvm(of);
    case MergeRule::Isolation:
      return fit_isolation(of);
    case MergeRule::Xid:
      return of.signal.xid ? fit_xid(of) : std::nullopt;
    case MergeRule::CoreDump:
      return fit_core_dump(of);
    case MergeRule::ServerLog:
      return fit_server_log(of);
    case MergeRule::Consequence:
      return fit_consequence(of);
    case MergeRule::Alone:
      break;
  }
  return std::nullopt;
}

/// How much a signal's words say about an incident of this class.
int says(const Fault& signal, FaultClass fault_class) {
  const Weights& weights = traits_of(signal.source).weights;
  if (is_departure(signal))
    return fault_class == FaultClass::Termination ? weights.departure_as_cause : weights.departure;
  // An Xid of another class, or one that only names the channel, says less.
  const bool is_beside = signal.source == FaultSource::Xid &&
                         (signal.fault_class != fault_class || signal.xid == xid_channel_reset);
  return weights.fault - (is_beside ? 1 : 0);
}

/// Completes it by what another signal of the same knows.
void complete(Gpu& gpu, const Gpu& other) {
  if (!gpu.number) gpu.number = other.number;
  if (gpu.pci.empty()) gpu.pci = other.pci;
  if (gpu.instance.empty()) gpu.instance = other.instance;
  gpu.is_here = gpu.is_here && other.is_here;
}

void describe(Incident& incident) {
  incident.fault_class = classify(incident);
  int most = -1;
  for (const Fault& signal : incident.signals) {
    if (incident.domain.empty()) incident.domain = signal.domain;
    complete(incident.gpu, signal.gpu);
    if (!incident.address || is_told_by_uvm(signal)) {
      if (signal.address) incident.address = signal.address;
    }
    const int weight = says(signal, incident.fault_class);
    if (weight > most) incident.kind = signal.kind;
    most = std::max(most, weight);
  }
}

/// A client of so long ago has nothing to do with what happens now.
constexpr Nanoseconds longest_memory = std::chrono::seconds(10);

}  // namespace

void Merger::summarize(Incident& incident) {
  describe(incident);
  if (options_.lists_clients && !incident.domain.empty()) clients_.try_emplace(incident.domain);
  incident.culprit = attribute(incident, processes_, clients_);
}

std::vector<Incident> Merger::note_clients(const std::string& domain, Monotonic asked,
                                           const std::vector<pid_t>& pids, Monotonic now) {
  DomainClients& clients = clients_[domain];
  const std::set<pid_t> before = std::exchange(clients.present, std::set<pid_t>(pids.begin(), pids.end()));
  clients.asked = asked;
  for (const pid_t pid : before) {
    if (!clients.present.contains(pid)) clients.others[pid] = now;
  }
  std::erase_if(clients.others, [&](const auto& other) {
    return clients.present.contains(other.first) || now - other.second > longest_memory;
  });
  return judge_again();
}

std::vector<Incident> Merger::judge_again() {
  std::vector<Incident> told;
  for (Open& open : open_) {
    summarize(open.incident);
    if (open.told) told.push_back(open.incident);
  }
  return told;
}

std::vector<Incident> Merger::place(pid_t pid, const std::string& domain, std::optional<std::uint32_t> gpu) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return {};
  found->second.domain = domain;
  found->second.gpu = gpu;
  return judge_again();
}

void Merger::note_client(const std::string& domain, pid_t pid, Monotonic now) {
  if (!options_.lists_clients || domain.empty() || own_clients_.contains(pid)) return;
  DomainClients& clients = clients_[domain];
  if (!clients.present.contains(pid)) clients.others[pid] = now;
}

void Merger::note_own_client(pid_t pid) {
  own_clients_.insert(pid);
  for (auto& [domain, clients] : clients_) {
    clients.present.erase(pid);
    clients.others.erase(pid);
  }
}

std::set<std::string> Merger::unlisted_domains() const {
  std::set<std::string> domains;
  for (const Open& open : open_) {
    const auto book = clients_.find(open.incident.domain);
    if (book == clients_.end() || is_only_exits(open.incident)) continue;
    if (!book->second.asked || *book->second.asked < open.incident.first_seen()) domains.insert(book->first);
  }
  return domains;
}

void Merger::watch(const WatchedProcess& process) {
  own_clients_.erase(process.pid);
  processes_[process.pid] = process;
}

void Merger::set_uvm_heard(pid_t pid, bool heard, Monotonic now) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  if (std::exchange(found->second.uvm_heard, heard) && !heard) found->second.uvm_heard_until = now;
}

void Merger::set_uvm_missed(pid_t pid, Monotonic when) {
  const auto found = processes_.find(pid);
  if (found != processes_.end()) found->second.uvm_missed = when;
  for (Open& open : open_) summarize(open.incident);
}

void Merger::set_ended(pid_t pid, Monotonic when) {
  const auto found = processes_.find(pid);
  if (found != processes_.end() && !found->second.ended) found->second.ended = when;
  for (auto& [domain, clients] : clients_) {
    if (clients.present.erase(pid) > 0) clients.others[pid] = when;
  }
}

/// True for the end of a process that came after the fault's last word: its domain serves again by then.
bool Merger::is_of_newcomer(const Incident& incident, const Fault& signal) const {
  const auto found = signal.pid ? processes_.find(*signal.pid) : processes_.end();
  if (!is_departure(signal) || found == processes_.end() || is_only_exits(incident)) return false;
  return std::ranges::all_of(incident.signals, [since = found->second.since](const Fault& word) {
    return is_departure(word) || word.when < since;
  });
}

std::optional<int> Merger::fit(const Open& open, const Fault& signal) const {
  const Incident& incident = open.incident;
  if (is_of_newcomer(incident, signal)) return std::nullopt;
  const bool is_in_time = goes_on(open) || signal.when - open.last <= options_.window;
  if (!may_be_same(incident.gpu, signal.gpu) || !is_in_time) return std::nullopt;
  if (is_aside(signal) && incident.fault_class != FaultClass::Device) return std::nullopt;
  const Relation relation(incident, signal);
  if (incident.fault_class == FaultClass::Device) return fit_device(relation);
  if (is_of_device(signal)) return std::nullopt;
  return fit_by_source(relation);
}

Merger::Open* Merger::find(const Fault& signal) {
  Open* best = nullptr;
  int most = -1;
  for (Open& open : open_) {
    const std::optional<int> score = fit(open, signal);
    if (!score || *score < most) continue;
    most = *score;
    best = &open;
  }
  return best;
}

void Merger::add(Open& open, const Fault& signal) {
  std::vector<Fault>& signals = open.incident.signals;
  const auto later = std::ranges::upper_bound(signals, signal.when, {}, &Fault::when);
  signals.insert(later, signal);
  if (signal.xid && !has_xid(open.incident, *signal.xid)) open.incident.xids.push_back(*signal.xid);
  open.last = std::max(open.last, signal.when);
  summarize(open.incident);
}

/// Departures of processes that alone said nothing, any of which may be what an Xid tells of: they become one
/// incident with it, so that nobody is picked at random.
void Merger::gather_exits(Open& into, const Fault& signal) {
  if (!signal.xid || !is_only_exits(into.incident)) return;
  for (Open& other : open_) {
    if (&other == &into || other.told || !is_only_exits(other.incident) || !fit(other, signal)) continue;
    for (const Fault& exit : std::exchange(other.incident.signals, {})) add(into, exit);
  }
}

/// Marks those whom the fault reaches, and takes something from that they need.
void Merger::strike(const Incident& incident) {
  const Monotonic until = incident.signals.back().when + options_.aftermath;
  // What a process writes of itself takes nobody else along.
  const bool takes_along = any_signal(incident, [](const Fault& signal) {
    return takes_contexts_along(signal) && signal.source != FaultSource::CoreDump;
  });
  const bool of_device = takes_along && incident.fault_class == FaultClass::Device;
  for (auto& [pid, process] : processes_) {
    const bool same_domain = takes_along && !incident.domain.empty() && process.domain == incident.domain;
    const bool same_gpu = may_be_same(Gpu{.number = process.gpu}, incident.gpu);
    const bool its_own =
        any_signal(incident, [&](const Fault& signal) { return is_sure_of(process, signal); });
    if (same_gpu && (of_device || same_domain || its_own)) process.struck_until = until;
  }
}

bool Merger::is_struck(const Fault& signal) const {
  const auto found = signal.pid ? processes_.find(*signal.pid) : processes_.end();
  return found != processes_.end() && found->second.struck_until &&
         signal.when <= *found->second.struck_until;
}

const Incident* Merger::take(const Fault& told) {
  Fault signal = told;
  if (signal.source == FaultSource::ProcessExit && signal.pid) set_ended(*signal.pid, signal.when);
  if (signal.source == FaultSource::MpsLog && is_departure(signal) && signal.pid) {
    note_client(signal.domain, *signal.pid, signal.when);
  }
  // However late it ends: alone that says nothing new. Together with an Xid it may.
  if (is_departure(signal) && is_struck(signal)) signal.conclusive = false;
  Open* open = find(signal);
  // An end may prove to be a cause later, a full fault buffer and a word about the GPU never.
  if (!open && (is_overflow(signal) || is_aside(signal))) return nullptr;
  if (open) gather_exits(*open, signal);
  if (!open) {
    open = &open_.emplace_back();
  }
  add(*open, signal);
  const bool says_something = any_signal(open->incident, [](const Fault& s) { return s.conclusive; });
  if (!says_something) return nullptr;
  if (!std::exchange(open->told, true)) open->incident.id = next_id_++;
  strike(open->incident);
  const std::uint64_t id = open->incident.id;
  std::erase_if(open_, [](const Open& other) { return other.incident.signals.empty(); });
  return &std::ranges::find(open_, id, [](const Open& other) { return other.incident.id; })->incident;
}

void Merger::set_going_on(const std::string& domain, bool goes_on, Monotonic now) {
  if (goes_on) {
    going_on_.insert(domain);
    return;
  }
  if (going_on_.erase(domain) == 0) return;
  for (Open& open : open_) {
    if (open.incident.domain == domain) open.last = std::max(open.last, now);
  }
}

std::vector<Incident> Merger::advance(Monotonic now) {
  std::vector<Incident> closed;
  for (Open& open : open_) {
    if (goes_on(open) || now - open.last <= options_.window) continue;
    open.incident.closed = true;
    if (open.told) closed.push_back(open.incident);
  }
  std::erase_if(open_, [](const Open& open) { return open.incident.closed; });
  std::erase_if(processes_, [&](const auto& entry) {
    const std::optional<Monotonic>& ended = entry.second.ended;
    return ended && now - *ended > 2 * options_.window;
  });
  return closed;
}

std::optional<Monotonic> Merger::next_closing() const {
  std::optional<Monotonic> first;
  for (const Open& open : open_) {
    if (!goes_on(open) && (!first || open.last < *first)) first = open.last;
  }
  return first ? std::optional(*first + options_.window + Nanoseconds(1)) : std::nullopt;
}

std::vector<Incident> Merger::finish() {
  going_on_.clear();
  return advance(Monotonic::max());
}

}  // namespace firebreak::fault
