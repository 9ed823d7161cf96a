// SPDX-License-Identifier: Apache-2.0
#include "watch/watcher.h"

#include <spdlog/spdlog.h>

#include <map>
#include <set>
#include <utility>

#include "base/line_splitter.h"
#include "fault/core_dump.h"
#include "fault/merger.h"
#include "os/processes.h"
#include "watch/departure.h"
#include "watch/error_file.h"
#include "watch/mps_log_detector.h"
#include "watch/nvml_detector.h"
#include "watch/process_scan.h"
#include "watch/uvm_detector.h"
#include "watch/xid_detector.h"

namespace firebreak::watch {

namespace {

/// Closing an incident a little late harms nobody; timers that are due at once would.
constexpr Nanoseconds shortest_wait = std::chrono::milliseconds(1);
/// For a domain's clients, where no answer has come.
constexpr Nanoseconds ask_again = std::chrono::milliseconds(100);
/// Between two tries where there was no descriptor for something.
constexpr Nanoseconds look_for_room = std::chrono::milliseconds(200);

}  // namespace

struct Watcher::Parts {
  struct Followed {
    Target target;
    std::unique_ptr<UvmDetector> uvm;
    std::unique_ptr<ProgressDetector> progress;
    std::unique_ptr<ErrorFile> error_file;
    std::unique_ptr<ExitDetector> exit;
    bool lacks_uvm = false;
    os::Watch uvm_again;
  };

  /// What a process says; its last words may come after the news of its end.
  struct Speaker {
    Target target;
    fault::CoreDumpReader core_dump;
    LineSplitter output;
    os::Watch forgetting;  ///< after its end
  };

  Parts(os::EventLoop& its_loop, os::Kernel& its_kernel, const Clock& its_clock, WatcherOptions its_options,
        WatcherCallbacks its_callbacks)
      : loop(its_loop),
        kernel(its_kernel),
        clock(its_clock),
        options(std::move(its_options)),
        callbacks(std::move(its_callbacks)),
        merger({.window = options.merge_window, .lists_clients = options.ask_for_clients != nullptr}) {}

  Status start_xid();
  Status start_isolation();
  Status start_nvml();
  Status start_mps_log(const std::string& directory, const std::string& domain);
  void start_all();
  Status follow(const Target& target, Parentage parentage);
  void follow_uvm(Followed& followed);
  void follow_uvm_later(pid_t pid, const Error& why);
  void follow_error_file(Followed& of);
  void read_output_line(pid_t pid, std::string_view line);
  void forget_in_a_while(pid_t pid);
  void hear_last_words(pid_t pid);
  void ended(const ProcessExit& exit);
  void note_gap(const Gap& gap);
  void note_state(fault::FaultSource source, const std::optional<Error>& missing);
  void merge_departures(const fault::Fault& memory_fault);
  void note(const fault::Fault& told);
  void merge(const fault::Fault& fault);
  void ask_for_clients();
  void close_due();
  void wait_for_closing();
  void tell(const fault::Incident& incident) {
    if (callbacks.on_incident) callbacks.on_incident(incident);
  }

  os::EventLoop& loop;
  os::Kernel& kernel;
  const Clock& clock;
  WatcherOptions options;
  WatcherCallbacks callbacks;
  fault::Merger merger;
  std::vector<SourceState> sources;
  bool uvm_works = true;
  os::Watch closing;
  std::uint64_t dropped_before = 0;  ///< UVM events, of processes that are gone
  std::unique_ptr<XidDetector> xid;
  std::unique_ptr<IsolationDetector> isolation;
  std::unique_ptr<NvmlDetector> nvml;
  std::vector<std::unique_ptr<MpsLogDetector>> mps_logs;
  std::map<pid_t, Followed> followed;
  std::map<pid_t, Speaker> speakers;
  std::set<pid_t> orderly;                         ///< whose end was announced
  std::map<std::string, Monotonic> clients_asked;  ///< of a domain, without an answer yet
  std::vector<Followed> ending;  ///< detectors that are destroyed outside of their callbacks
};

Status Watcher::Parts::start_xid() {
  XidDetectorOptions log;
  log.reading.idle_period = options.xid_sweep_without_bell;
  xid = std::make_unique<XidDetector>(
      loop, kernel, clock, log, [this](const fault::Fault& fault) { note(fault); },
      [this](const Gap& gap) {
        note_state(fault::FaultSource::Xid, xid->off_because());
        note_gap(gap);
      });
  Status started = xid->start();
  if (!started) {
    xid.reset();
  } else if (const auto& why = xid->late_because()) {
    spdlog::info("Xid lines may come up to 4 ms late: {}", to_string(*why));
  }
  return started;
}

Status Watcher::Parts::start_isolation() {
  isolation = std::make_unique<IsolationDetector>(
      loop, kernel,
      [this](const IsolationEvent& event) {
        if (const auto fault = fault_of(event, clock.now())) note(*fault);
      },
      [](const Error& error) {
        spdlog::warn("no events of fault isolation any more: {}", to_string(error));
      });
  Status started = isolation->start();
  if (!started) isolation.reset();
  return started;
}

Status Watcher::Parts::start_nvml() {
  Result<std::unique_ptr<NvmlLibrary>> library = NvmlLibrary::open(options.nvml_library);
  if (!library) return propagate(library);
  auto detector = std::make_unique<NvmlDetector>(
      loop, clock, std::move(*library), [this](const fault::Fault& fault) { note(fault); },
      [](const Error& error) { spdlog::warn("{}", to_string(error)); });
  if (Status started = detector->start(); !started) return started;
  nvml = std::move(detector);
  return {};
}

Status Watcher::Parts::start_mps_log(const std::string& directory, const std::string& domain) {
  MpsLogDetector::Options log;
  log.directory = directory;
  log.domain = domain;
  log.on_arrival = [this, domain](std::optional<pid_t> pid) {
    if (pid) merger.note_client(domain, *pid, clock.now());
    if (options.ask_for_clients && !domain.empty()) options.ask_for_clients(domain);
  };
  auto detector = std::make_unique<MpsLogDetector>(loop, kernel, clock, log,
                                                   [this](const fault::Fault& fault) { note(fault); });
  if (Status started = detector->start(); !started) return started;
  mps_logs.push_back(std::move(detector));
  return {};
}

void Watcher::Parts::start_all() {
  const auto note = [this](fault::FaultSource source, const Status& started, std::string remark) {
    sources.push_back({source, started ? std::nullopt : std::optional(started.error()), std::move(remark)});
  };
  if (options.xid) {
    const Status started = start_xid();
    const bool late = xid && xid->late_because();
    note(fault::FaultSource::Xid, started,
         late ? "up to 4 ms late: " + to_string(*xid->late_because()) : std::string());
  }
  if (options.uvm) note(fault::FaultSource::UvmEvent, UvmQueue::offered(kernel), {});
  if (options.isolation) {
    const Status started = start_isolation();
    // Most drivers have none, and nobody misses it.
    if (started || started.error().code != ErrorCode::NotFound) {
      note(fault::FaultSource::Isolation, started, {});
    }
  }
  if (!options.nvml_library.empty()) note(fault::FaultSource::Nvml, start_nvml(), {});
  for (const std::string& directory : options.mps_log_directories) {
    const auto domain = options.domain_of_log_directory.find(directory);
    const bool named = domain != options.domain_of_log_directory.end();
    note(fault::FaultSource::MpsLog, start_mps_log(directory, named ? domain->second : std::string()),
         directory);
  }
}

Status Watcher::Parts::follow(const Target& target, Parentage parentage) {
  Followed started;
  started.target = target;
  const pid_t pid = target.pid;
  started.exit = std::make_unique<ExitDetector>(
      loop, kernel, clock, target, parentage,
      [this, pid](const fault::Fault& fault) {
        hear_last_words(pid);
        note(fault);
      },
      [this](const ProcessExit& exit) { ended(exit); });
  if (Status done = started.exit->start(); !done) return done;
  orderly.erase(pid);  // of one that had the number before
  fault::WatchedProcess process;
  process.pid = pid;
  process.gpu = target.gpu;
  process.domain = target.domain;
  process.tenant = target.tenant;
  merger.watch(process);
  Followed& kept = followed[pid] = std::move(started);
  speakers[pid] = Speaker{target, {}, {}, {}};
  if (options.uvm && uvm_works) follow_uvm(kept);
  follow_error_file(kept);
  return {};
}

/// What is waiting to be read may be the fault that ended the process: that comes first.
void Watcher::Parts::hear_last_words(pid_t pid) {
  const auto found = followed.find(pid);
  if (found == followed.end()) return;
  if (found->second.uvm) found->second.uvm->read_now();
  if (found->second.error_file) found->second.error_file->read_now();
}

/// Where CUDA will tell of faults there.
void Watcher::Parts::follow_error_file(Followed& of) {
  const pid_t pid = of.target.pid;
  if (os::variable_in(os::environment_of(kernel, pid), fault::core_dump_progress_variable) != "1") return;
  auto file = std::make_unique<ErrorFile>(
      loop, kernel, pid, [this, pid](std::string_view line) { read_output_line(pid, line); });
  if (const Status started = file->start(); !started) {
    return spdlog::info("what process {} says of its faults is not heard: {}", pid,
                        to_string(started.error()));
  }
  of.error_file = std::move(file);
}

void Watcher::Parts::follow_uvm(Followed& of) {
  const pid_t pid = of.target.pid;
  UvmDetectorOptions uvm;
  uvm.page_faults = options.uvm_page_faults;
  uvm.on_page_fault = callbacks.on_page_fault;
  uvm.on_gap = [this](const Gap& gap) { note_gap(gap); };
  uvm.on_attached = [this, pid] {
    if (const auto found = followed.find(pid); found != followed.end()) found->second.lacks_uvm = false;
    if (callbacks.on_uvm_heard) callbacks.on_uvm_heard(pid);
  };
  of.uvm = std::make_unique<UvmDetector>(
      loop, kernel, clock, of.target, uvm, [this](const fault::Fault& fault) { note(fault); },
      [this, target = of.target](const Error& error) {
        if (error.code == ErrorCode::ResourceExhausted) return follow_uvm_later(target.pid, error);
        const std::string words = "its UVM events are not heard any more: " + to_string(error);
        if (error.code != ErrorCode::NotFound) {
          return note_gap({fault::FaultSource::UvmEvent, target.pid, target.domain, words});
        }
        spdlog::debug("process {}: {}", target.pid, words);
      });
  if (const Status done = of.uvm->start(); !done) {
    // What a process lacks may be there for the next; a driver of another kind is said once.
    uvm_works = done.error().code != ErrorCode::Protocol;
    of.uvm.reset();
    if (done.error().code == ErrorCode::ResourceExhausted) return follow_uvm_later(pid, done.error());
    spdlog::warn("{}", to_string(done.error()));
    return;
  }
}

/// We have no descriptor left for them.
void Watcher::Parts::follow_uvm_later(pid_t pid, const Error& why) {
  const auto found = followed.find(pid);
  if (found == followed.end()) return;
  if (!std::exchange(found->second.lacks_uvm, true))
    spdlog::warn("UVM events of process {} are not heard; tried again: {}", pid, to_string(why));
  found->second.uvm_again = loop.after_or_now(look_for_room, [this, pid] {
    const auto still = followed.find(pid);
    if (still != followed.end()) follow_uvm(still->second);
  });
}

void Watcher::Parts::ended(const ProcessExit& exit) {
  merger.set_ended(exit.pid, exit.when);
  const auto listening = followed.find(exit.pid);
  // First: who is told may ask whether anybody still keeps its address space.
  if (listening != followed.end() && listening->second.uvm) listening->second.uvm->stop();
  if (callbacks.on_exit) callbacks.on_exit(exit);
  const auto found = followed.find(exit.pid);
  if (found == followed.end()) return;
  if (found->second.uvm) dropped_before += found->second.uvm->counters().dropped;
  ending.push_back(std::move(found->second));
  followed.erase(found);
  forget_in_a_while(exit.pid);
  loop.post([this] { ending.clear(); });
}

void Watcher::Parts::read_output_line(pid_t pid, std::string_view line) {
  const auto speaker = speakers.find(pid);
  if (speaker == speakers.end()) return;
  const auto exception = speaker->second.core_dump.read(line);
  if (!exception) return;
  const auto found = followed.find(pid);
  ErrorFile* const file = found != followed.end() ? found->second.error_file.get() : nullptr;
  if (const auto other = file != nullptr ? file->shared_with() : std::nullopt) {
    return spdlog::info("process {} or {} tells of a fault; they write to one file", pid, *other);
  }
  fault::Fault fault = fault::from_core_dump(*exception, pid, clock.now());
  set_subject(fault, speaker->second.target);
  note(fault);
}

void Watcher::Parts::forget_in_a_while(pid_t pid) {
  auto timer = loop.after(options.merge_window, [this, pid] { speakers.erase(pid); });
  if (!timer) {
    speakers.erase(pid);
    return;
  }
  speakers[pid].forgetting = std::move(*timer);
}

/// What a dying process leaves behind is a memory fault; who is dying when one shows came first.
void Watcher::Parts::merge_departures(const fault::Fault& memory_fault) {
  std::vector<fault::Fault> departures;
  for (const auto& [pid, process] : followed) {
    // Without this we do not know that it ever held the GPU.
    if (!process.uvm || !process.uvm->attached()) continue;
    const std::optional<std::string> words = departure_of(kernel, pid);
    if (!words) continue;
    fault::Fault& departure = departures.emplace_back();
    departure.fault_class = fault::FaultClass::Termination;
    departure.kind = *words;
    departure.conclusive = false;
    set_subject(departure, process.target);
    departure.when = memory_fault.when;
    departure.source = fault::FaultSource::ProcessExit;
  }
  for (const fault::Fault& departure : departures) merge(departure);
}

void Watcher::Parts::note_state(fault::FaultSource source, const std::optional<Error>& missing) {
  for (SourceState& state : sources) {
    if (state.source == source) state.missing = missing;
  }
}

void Watcher::Parts::note_gap(const Gap& gap) {
  const std::string whose = gap.pid ? " of process " + std::to_string(*gap.pid) : std::string();
  spdlog::warn("words of {}{} were missed: {}", to_string(gap.source), whose, gap.text);
  if (gap.pid && gap.danger) merger.set_uvm_missed(*gap.pid, clock.now());
  // Also where it is the kernel log's own: what follows the lost record may be its fault's lines.
  if (xid) xid->suspect();
  if (callbacks.on_gap) callbacks.on_gap(gap);
}

void Watcher::Parts::note(const fault::Fault& told) {
  // The server's log cannot tell an orderly end from another.
  if (fault::is_departure(told) && !told.conclusive && told.pid && orderly.contains(*told.pid)) return;
  const auto named = told.pid ? followed.find(*told.pid) : followed.end();
  const fault::Fault fault =
      completed(told, named == followed.end() ? nullptr : &named->second.target, options.domain_of_server);
  // First those who act on it; who caused it may take some more microseconds.
  if (callbacks.on_signal) callbacks.on_signal(fault);
  const bool is_xid = fault.source == fault::FaultSource::Xid;
  // Its lines follow.
  if (xid && !is_xid) xid->suspect();
  if (is_xid && fault.fault_class == fault::FaultClass::MmuReplayable) merge_departures(fault);
  merge(fault);
}

void Watcher::Parts::merge(const fault::Fault& fault) {
  for (auto& [pid, process] : followed) {
    merger.set_uvm_heard(pid, process.uvm && process.uvm->attached(), clock.now());
  }
  if (const fault::Incident* incident = merger.take(fault)) tell(*incident);
  if (!closing) wait_for_closing();
  ask_for_clients();
}

/// Who else was there when it happened; the answer may change who is named.
void Watcher::Parts::ask_for_clients() {
  if (!options.ask_for_clients) return;
  for (const std::string& domain : merger.unlisted_domains()) {
    const auto asked = clients_asked.find(domain);
    if (asked != clients_asked.end() && clock.now() - asked->second < ask_again) continue;
    clients_asked[domain] = clock.now();
    options.ask_for_clients(domain);
  }
}

void Watcher::Parts::close_due() {
  closing.cancel();
  for (const fault::Incident& incident : merger.advance(clock.now())) tell(incident);
  wait_for_closing();
}

void Watcher::Parts::wait_for_closing() {
  const auto next = merger.next_closing();
  if (!next) return;
  auto timer = loop.after(std::max(*next - clock.now(), shortest_wait), [this] { close_due(); });
  if (!timer) return spdlog::error("incidents stay open: {}", to_string(timer.error()));
  closing = std::move(*timer);
}

Watcher::Watcher(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, WatcherOptions options,
                 WatcherCallbacks callbacks)
    : parts_(std::make_unique<Parts>(loop, kernel, clock, std::move(options), std::move(callbacks))) {}

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

Status Watcher::add_mps_log_directory(const std::string& directory, const std::string& domain) {
  return parts_->start_mps_log(directory, domain);
}

Status Watcher::follow(const Target& target, Parentage parentage) {
  return parts_->follow(target, parentage);
}

Status Watcher::follow_progress(pid_t pid, ReadProgress read, ProgressDetector::Options options) {
  const auto found = parts_->followed.find(pid);
  if (found == parts_->followed.end()) {
    return fail(ErrorCode::NotFound, "process " + std::to_string(pid) + " is not followed");
  }
  auto detector = std::make_unique<ProgressDetector>(
      parts_->loop, parts_->clock, found->second.target, options, std::move(read),
      [this](const fault::Fault& fault) { parts_->note(fault); });
  if (Status started = detector->start(); !started) return started;
  found->second.progress = std::move(detector);
  return {};
}

void Watcher::note_output(pid_t pid, std::string_view text) {
  const auto speaker = parts_->speakers.find(pid);
  if (speaker == parts_->speakers.end()) return;
  speaker->second.output.take(text,
                              [this, pid](std::string_view line) { parts_->read_output_line(pid, line); });
}

std::uint64_t Watcher::dropped_uvm_events() const {
  std::uint64_t dropped = parts_->dropped_before;
  for (const auto& [pid, process] : parts_->followed) {
    if (process.uvm) dropped += process.uvm->counters().dropped;
  }
  return dropped;
}

bool Watcher::listen_to_page_faults(pid_t pid) {
  const auto found = parts_->followed.find(pid);
  if (found == parts_->followed.end() || !found->second.uvm) return false;
  if (const Status done = found->second.uvm->listen_to_page_faults(); !done) {
    spdlog::warn("page faults of process {} are not heard: {}", pid, to_string(done.error()));
  }
  return hears_uvm_of(pid);
}

void Watcher::note_clients(const std::string& domain, Monotonic asked, const std::vector<pid_t>& pids) {
  parts_->clients_asked.erase(domain);
  for (const fault::Incident& incident :
       parts_->merger.note_clients(domain, asked, pids, parts_->clock.now())) {
    parts_->tell(incident);
  }
}

void Watcher::expect_exit(pid_t pid) {
  parts_->orderly.insert(pid);
  const auto found = parts_->followed.find(pid);
  if (found != parts_->followed.end()) found->second.exit->expect_exit();
}

bool Watcher::lacks_uvm_of(pid_t pid) const {
  const auto found = parts_->followed.find(pid);
  return found != parts_->followed.end() && found->second.lacks_uvm;
}

bool Watcher::hears_uvm_of(pid_t pid) const {
  const auto found = parts_->followed.find(pid);
  return found != parts_->followed.end() && found->second.uvm && found->second.uvm->attached();
}

bool Watcher::hears_outcomes() const {
  if (!parts_->isolation || !parts_->isolation->is_hearing()) return false;
  const auto state = read_isolation_state(parts_->kernel);
  return state && state->mode == IsolationMode::On;
}

void Watcher::suspect() {
  if (parts_->xid) parts_->xid->suspect();
}

void Watcher::finish() {
  parts_->closing.cancel();
  for (const fault::Incident& incident : parts_->merger.finish()) parts_->tell(incident);
}

}  // namespace firebreak::watch
