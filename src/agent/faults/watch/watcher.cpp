// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/watcher.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "agent/faults/watch/departure.h"
#include "agent/faults/watch/incident_keeper.h"

namespace firebreak::watch {

namespace {

/// Time for which an announcement holds of a process that is not followed: it is ended within seconds.
constexpr Nanoseconds announcement_lasts = std::chrono::seconds(60);
/// Its MPS server's word comes with the end of its connection, and the log is read a moment later.
constexpr Nanoseconds server_notices_within = std::chrono::seconds(5);

/// True for an exit with a status, and for the signals by which terminals, service managers, pipelines,
/// timers and limits end programs: for all but those of a crash, and the one that leaves no choice.
bool is_chosen(const std::optional<os::ExitStatus>& status) {
  constexpr std::array crashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGKILL};
  return status && std::ranges::count(crashes, status->signal) == 0;
}

}  // namespace

struct Watcher::Parts {
  struct Listening {
    fault::FaultSource source;
    Listed listed;
    bool was_started = false;
    std::unique_ptr<Detector> detector;
  };

  Parts(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, WatcherOptions options,
        WatcherCallbacks its_callbacks, const DetectorTable& table);

  Status add(const DetectorRow& row);
  void start_all();
  Status follow(const Target& told, Parentage parentage);
  void place(pid_t pid, const std::string& domain);
  void ended(const ProcessExit& exit, const std::optional<fault::Fault>& fault);
  bool is_fault(const ProcessExit& exit, const fault::Fault& end) const;
  void note_gap(const Gap& gap);
  void note(const fault::Fault& told);
  void merge(const fault::Fault& fault);
  void merge_departures(const fault::Fault& memory_fault);
  void suspect(std::optional<fault::FaultSource> who_says_so = std::nullopt);
  UvmHearing hears_uvm_of(pid_t pid) const;
  const Target* followed_as(pid_t pid) const;
  void expect_exit(pid_t pid);
  bool is_announced(pid_t pid) const;

  WatcherCallbacks callbacks;
  IncidentKeeper incidents;
  std::vector<SourceState> sources;
  std::map<pid_t, Target> followed;
  std::set<pid_t> had_gpu;  ///< followed processes that were seen to use it; at their end it is gone
  std::map<pid_t, Monotonic> orderly;  ///< processes whose end was announced, and until when a word of it may
                                       ///< come
  Workplace at;
  std::vector<Listening> detectors;  ///< detectors in the table's order; they use all of the above
};

Watcher::Parts::Parts(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, WatcherOptions options,
                      WatcherCallbacks its_callbacks, const DetectorTable& table)
    : callbacks(std::move(its_callbacks)),
      incidents(loop, clock, {options.merge_window, options.ask_for_clients}, callbacks.on_incident),
      at{.loop = loop,
         .kernel = kernel,
         .clock = clock,
         .options = std::move(options),
         .on_fault = [this](const fault::Fault& fault) { note(fault); },
         .on_gap = [this](const Gap& gap) { note_gap(gap); },
         .on_page_fault = callbacks.on_page_fault,
         .on_uvm_heard =
             [this](pid_t pid) {
               had_gpu.insert(pid);
               if (callbacks.on_uvm_heard) callbacks.on_uvm_heard(pid);
             },
         .on_exit = [this](const ProcessExit& exit,
                           const std::optional<fault::Fault>& fault) { ended(exit, fault); },
         .on_client = [this](const std::string& domain,
                             std::optional<pid_t> client) { incidents.note_client(domain, client); },
         .is_expected_to_end = [this](pid_t pid) { return is_announced(pid); }} {
  for (const DetectorRow& row : table) {
    if (!row.is_wanted(at.options)) continue;
    for (auto& detector : row.make(at))
      detectors.push_back({row.source, row.listed, false, std::move(detector)});
  }
}

void Watcher::Parts::start_all() {
  for (Listening& each : detectors) {
    if (std::exchange(each.was_started, true)) continue;
    const Status started = each.detector->start();
    const bool is_missing = !started && started.error().code == ErrorCode::NotFound;
    if (each.listed == Listed::Never || (each.listed == Listed::WhereItIs && is_missing)) continue;
    const auto missing = started ? std::nullopt : std::optional(started.error());
    sources.push_back({each.source, missing, each.detector->remark()});
  }
}

/// None of them is kept where one cannot start.
Status Watcher::Parts::add(const DetectorRow& row) {
  std::vector<std::unique_ptr<Detector>> made = row.make(at);
  for (const std::unique_ptr<Detector>& detector : made) {
    if (Status started = detector->start(); !started) return started;
  }
  for (auto& detector : made) detectors.push_back({row.source, row.listed, true, std::move(detector)});
  return {};
}

Status Watcher::Parts::follow(const Target& told, Parentage parentage) {
  Target target = told;
  const pid_t pid = target.pid;
  if (!followed.contains(pid)) had_gpu.erase(pid);  // it was another's, which had the number before
  if (!target.gpu) target.gpu = at.options.places.number_of_domain(target.domain);
  for (auto each = detectors.begin(); each != detectors.end(); ++each) {
    Status done = each->detector->follow(target, parentage);
    if (done) continue;
    // The words of before stay for a process that is followed already.
    if (!followed.contains(pid)) {
      for (auto begun = detectors.begin(); begun != each; ++begun) begun->detector->stop(pid);
    }
    return done;
  }
  followed[pid] = target;
  orderly.erase(pid);  // the announcement was for one that had the number before
  incidents.follow(target);
  return {};
}

void Watcher::Parts::place(pid_t pid, const std::string& domain) {
  const auto found = followed.find(pid);
  if (found == followed.end()) return;
  found->second.domain = domain;
  if (const auto gpu = at.options.places.number_of_domain(domain)) found->second.gpu = gpu;
  incidents.place(found->second);
}

void Watcher::Parts::ended(const ProcessExit& exit, const std::optional<fault::Fault>& fault) {
  if (fault) {
    // Words that wait to be read may be of the fault that ended the process: they come first.
    for (const Listening& each : detectors) each.detector->read_now(exit.pid);
    fault::Fault end = *fault;
    end.conclusive = is_fault(exit, end);
    note(end);
  }
  incidents.set_ended(exit.pid, exit.when);
  // First: who is told may ask whether anybody still keeps its address space.
  for (const Listening& each : detectors) each.detector->stop(exit.pid);
  if (callbacks.on_exit) callbacks.on_exit(exit);
  followed.erase(exit.pid);
  had_gpu.erase(exit.pid);
  if (const auto announced = orderly.find(exit.pid); announced != orderly.end())
    announced->second = exit.when + server_notices_within;
}

/// An end is a fault by itself only where GPU work was under way. Where nothing is known of that, an end that
/// programs and their users choose waits for a second witness: an Xid, or the MPS server.
bool Watcher::Parts::is_fault(const ProcessExit& exit, const fault::Fault& end) const {
  const WorkLeft work = at.options.work_left_by ? at.options.work_left_by(exit.pid) : WorkLeft::Unknown;
  if (work != WorkLeft::Unknown) return work == WorkLeft::Running;
  const bool had = had_gpu.contains(exit.pid) || hears_uvm_of(exit.pid) == UvmHearing::NoDescriptors;
  return end.conclusive && had && !is_chosen(exit.status);
}

void Watcher::Parts::note_gap(const Gap& gap) {
  const std::string whose = gap.pid ? " of process " + std::to_string(*gap.pid) : std::string();
  spdlog::warn("words of {}{} were missed: {}", to_string(gap.source), whose, gap.text);
  if (!gap.pid) {
    for (SourceState& state : sources) {
      if (state.source == gap.source) state.missing = gap.silent_because;
    }
  }
  if (gap.pid && gap.danger) incidents.set_uvm_missed(*gap.pid);
  // The gap's owner is suspected, too: what follows the lost word may be of the same fault.
  suspect();
  if (callbacks.on_gap) callbacks.on_gap(gap);
}

void Watcher::Parts::note(const fault::Fault& told) {
  // The server's log cannot tell an orderly end from another.
  if (fault::is_departure(told) && !told.conclusive && told.pid && is_announced(*told.pid)) return;
  const Target* const named = told.pid ? followed_as(*told.pid) : nullptr;
  const fault::Fault fault = completed(told, named, at.options.places);
  // First those who act on it; who caused it may take some more microseconds.
  if (callbacks.on_signal) callbacks.on_signal(fault);
  suspect(fault.source);
  if (may_be_of_departure(fault)) merge_departures(fault);
  merge(fault);
}

/// Looks who is dying when what a dying process leaves behind shows came first.
void Watcher::Parts::merge_departures(const fault::Fault& memory_fault) {
  std::vector<fault::Fault> departures;
  for (const auto& [pid, target] : followed) {
    // The process is not known to have held the GPU ever without this.
    if (hears_uvm_of(pid) != UvmHearing::Yes) continue;
    if (const auto words = departure_of(at.kernel, pid)) {
      departures.push_back(departure_as_fault(target, *words, memory_fault.when));
    }
  }
  for (const fault::Fault& departure : departures) merge(departure);
}

void Watcher::Parts::merge(const fault::Fault& fault) {
  for (const auto& [pid, target] : followed) {
    incidents.set_uvm_heard(pid, hears_uvm_of(pid) == UvmHearing::Yes);
  }
  incidents.take(fault);
}

void Watcher::Parts::suspect(std::optional<fault::FaultSource> who_says_so) {
  for (const Listening& each : detectors) {
    if (each.source != who_says_so) each.detector->suspect();
  }
}

/// Returns what the first of them says who hears them, or would like to.
UvmHearing Watcher::Parts::hears_uvm_of(pid_t pid) const {
  for (const Listening& each : detectors) {
    const UvmHearing hearing = each.detector->hears_uvm_of(pid);
    if (hearing != UvmHearing::No) return hearing;
  }
  return UvmHearing::No;
}

const Target* Watcher::Parts::followed_as(pid_t pid) const {
  const auto found = followed.find(pid);
  return found == followed.end() ? nullptr : &found->second;
}

/// The end of one that is followed is seen. Another one has its number later.
void Watcher::Parts::expect_exit(pid_t pid) {
  const Monotonic now = at.clock.now();
  std::erase_if(orderly, [now](const auto& each) { return each.second < now; });
  orderly[pid] = followed.contains(pid) ? Monotonic::max() : now + announcement_lasts;
}

bool Watcher::Parts::is_announced(pid_t pid) const {
  const auto found = orderly.find(pid);
  return found != orderly.end() && at.clock.now() <= found->second;
}

Watcher::Watcher(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, WatcherOptions options,
                 WatcherCallbacks callbacks, const DetectorTable& table)
    : parts_(std::make_unique<Parts>(loop, kernel, clock, std::move(options), std::move(callbacks), table)) {}

Watcher::~Watcher() = default;

std::vector<std::string> Watcher::start() {
  parts_->start_all();
  std::vector<std::string> missing;
  for (const SourceState& source : parts_->sources) {
    if (source.missing) missing.push_back(to_string(*source.missing));
  }
  return missing;
}

const std::vector<SourceState>& Watcher::sources() const { return parts_->sources; }

Status Watcher::add(const DetectorRow& row) { return parts_->add(row); }

Status Watcher::follow(const Target& target, Parentage parentage) {
  return parts_->follow(target, parentage);
}

void Watcher::place(pid_t pid, const std::string& domain) { parts_->place(pid, domain); }

Status Watcher::follow_progress(pid_t pid, const ReadProgress& read, const ProgressOptions& options) {
  const Target* const target = parts_->followed_as(pid);
  if (target == nullptr) {
    return fail(ErrorCode::NotFound, "process " + std::to_string(pid) + " is not followed");
  }
  for (const auto& each : parts_->detectors) {
    if (Status done = each.detector->follow_progress(*target, read, options); !done) return done;
  }
  return {};
}

void Watcher::note_output(pid_t pid, std::string_view text) {
  for (const auto& each : parts_->detectors) each.detector->note_output(pid, text);
}

void Watcher::note_exception(pid_t pid, const fault::CoreDumpException& exception) {
  for (const auto& each : parts_->detectors) each.detector->note_exception(pid, exception);
}

void Watcher::look_again(pid_t pid) {
  for (const auto& each : parts_->detectors) each.detector->look_again(pid);
}

bool Watcher::listen_to_page_faults(pid_t pid) {
  return std::ranges::any_of(parts_->detectors,
                             [pid](const auto& each) { return each.detector->listen_to_page_faults(pid); });
}

void Watcher::set_going_on(const std::string& domain, bool goes_on) {
  parts_->incidents.set_going_on(domain, goes_on);
}

void Watcher::note_own_client(pid_t pid) { parts_->incidents.note_own_client(pid); }

void Watcher::note_clients(const std::string& domain, Monotonic asked, const std::vector<pid_t>& pids) {
  parts_->incidents.note_clients(domain, asked, pids);
}

void Watcher::expect_exit(pid_t pid) { parts_->expect_exit(pid); }

bool Watcher::lacks_uvm_of(pid_t pid) const { return parts_->hears_uvm_of(pid) == UvmHearing::NoDescriptors; }

bool Watcher::hears_uvm_of(pid_t pid) const { return parts_->hears_uvm_of(pid) == UvmHearing::Yes; }

bool Watcher::hears_outcomes() const {
  return std::ranges::any_of(parts_->detectors,
                             [](const auto& each) { return each.detector->tells_outcomes(); });
}

void Watcher::suspect() { parts_->suspect(); }

void Watcher::finish() { parts_->incidents.finish(); }

}  // namespace firebreak::watch
