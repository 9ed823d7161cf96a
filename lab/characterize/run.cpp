// SPDX-License-Identifier: Apache-2.0
#include "characterize/run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>

namespace firebreak::characterize {
namespace {

/// How often to look whether it has been quiet for long enough.
constexpr Milliseconds look{20};

/// The clock's readings at the turns of one run.
struct Times {
  std::int64_t told_ns = 0;      ///< the faulter was told to go
  std::int64_t launched_ns = 0;  ///< the faulting launch; told_ns until it is known
  std::int64_t settled_ns = 0;   ///< nothing more is expected of the fault
  std::int64_t closing_ns = 0;   ///< later events are our own doing

  double after_launch_ms(std::int64_t at_ns) const { return to_ms(Nanoseconds(at_ns - launched_ns)); }
};

std::string end_words(const os::ExitStatus& exit) {
  return exit.signal != 0 ? fmt::format("signal {}", exit.signal) : fmt::format("exit {}", exit.exit_code);
}

/// The longest gap that overlaps the time from the launch until the fault has settled.
std::optional<Stall> longest_stall(const VictimRecord& record, const Times& times) {
  for (const Gap& gap : record.gaps) {
    if (gap.to_ns <= times.launched_ns || gap.from_ns >= times.settled_ns) continue;
    return Stall{times.after_launch_ms(gap.from_ns), times.after_launch_ms(gap.to_ns)};
  }
  return std::nullopt;
}

Participant participant(const Player& player, const Times& times) {
  Participant made;
  if (player.actor == nullptr) return made;
  const stage::ActorRecord& process = player.actor->record();
  made.pid = process.pid;
  if (player.ready_at_ns != 0) made.start_ms = to_ms(Nanoseconds(player.ready_at_ns - process.started_at_ns));
  if (const auto& report = player.fault.report; report && report->answered_at_ns != 0) {
    made.error = report->error_name == "CUDA_SUCCESS" ? "" : report->error_name;
    (made.error.empty() ? made.answered_ms : made.error_ms) = times.after_launch_ms(report->answered_at_ns);
  }
  if (player.record) {
    made.kernels = player.record->kernels;
    made.error = player.record->error;
    if (!made.error.empty()) made.error_ms = times.after_launch_ms(player.record->error_at_ns);
    made.longest_stall = longest_stall(*player.record, times);
  }
  // A faulter that was answered without an error had nothing left to do.
  const bool let_pass = player.fault.report && player.fault.report->answered_at_ns != 0 && made.error.empty();
  const bool by_itself =
      process.exit && !let_pass && (times.closing_ns == 0 || process.ended_at_ns < times.closing_ns);
  if (by_itself) {
    made.end = end_words(*process.exit);
    made.end_ms = times.after_launch_ms(process.ended_at_ns);
  }
  return made;
}

std::vector<Signal> signals_of(const Scene& scene, const Times& times) {
  std::vector<Signal> told;
  for (const fault::Fault& fault : scene.signals()) {
    const std::int64_t at_ns = to_ns(fault.when);
    const bool of_the_fault = at_ns >= times.told_ns && (times.closing_ns == 0 || at_ns < times.closing_ns);
    if (!of_the_fault) continue;
    Signal signal{key_of(fault.source), fault.kind, times.after_launch_ms(at_ns), fault.xid, {}};
    if (fault.pid) signal.names = scene.name_of(*fault.pid);
    told.push_back(std::move(signal));
  }
  for (const strays::Stray& stray : scene.strays()) {
    told.push_back({stray_source,
                    strays::describe(stray),
                    times.after_launch_ms(to_ns(stray.when)),
                    {},
                    scene.name_of(stray.pid)});
  }
  std::ranges::stable_sort(told, {}, &Signal::after_ms);
  return told;
}

Attribution attribution_of(const Scene& scene, const Times& times) {
  Attribution made;
  for (const auto& [id, incident] : scene.incidents()) {
    const std::int64_t first_ns = to_ns(incident.first_seen());
    if (first_ns < times.told_ns || first_ns >= times.closing_ns) continue;
    ++made.incidents;
    const fault::Culprit& culprit = incident.culprit;
    const std::string names = culprit.pid ? scene.name_of(*culprit.pid) : "";
    const Verdict verdict = !culprit.pid                     ? Verdict::Unknown
                            : names == key_of(Role::Faulter) ? Verdict::Right
                                                             : Verdict::Wrong;
    if (verdict <= made.verdict) continue;
    made.verdict = verdict;
    made.names = names;
    made.confidence = fault::to_string(culprit.confidence);
    made.evidence = culprit.evidence;
  }
  return made;
}

/// Notes what was seen up to now.
void observe(const Scene& scene, Times& times, Run& run) {
  const auto& report = scene.of(Role::Faulter).fault.report;
  times.launched_ns = report ? report->launched_at_ns : times.told_ns;
  for (const Role role : roles) run.participants[key_of(role)] = participant(scene.of(role), times);
  run.signals = signals_of(scene, times);
}

/// How long it has been quiet after one more look. A machine that stood still is not taken for silence: no
/// look counts for more than it was to take.
Nanoseconds look_once(Scene& scene, const Clock& clock, Nanoseconds quiet) {
  const Monotonic before = clock.now();
  const Monotonic last_event = scene.last_event();
  scene.stage().loop().run_once(look);
  if (scene.last_event() != last_event) return {};
  return quiet + std::min<Nanoseconds>(clock.now() - before, look);
}

/// Tells whether the last kernels of a process that is held have ended.
bool is_over(const Scene& scene, const Settings& settings) {
  return settings.hold.count() == 0 || scene.release();
}

/// Lets the fault go and waits until it has done what it does.
Status raise(Scene& scene, const Settings& settings, const Expected& expected, const Clock& clock,
             Times& times, Run& run) {
  times.told_ns = to_ns(clock.now());
  const Player& faulter = scene.of(Role::Faulter);
  // A fault that the hardware lets pass ends in an orderly way.
  if (!expected.is_fault() || expected.is_contained())
    scene.watcher().expect_exit(faulter.actor->record().pid);
  faulter.actor->tell("go");
  const Monotonic deadline = clock.now() + settings.settle_patience;
  Nanoseconds quiet{};
  while (clock.now() < deadline) {
    observe(scene, times, run);
    const bool faulter_is_done = run.of(Role::Faulter).died() || faulter.fault.report;
    const bool has_settled = seen_all(run, expected) || (faulter_is_done && quiet > settings.quiet);
    if (has_settled && is_over(scene, settings)) break;
    if (scene.stage().interrupted()) return fail(ErrorCode::Unavailable, "interrupted");
    quiet = look_once(scene, clock, quiet);
  }
  times.settled_ns = to_ns(clock.now());
  return {};
}

/// Starts new clients in the faulter's domain, one after the other, until one has completed a kernel.
Status restart(Scene& scene, const Settings& settings, const Clock& clock, const Times& times,
               Restart& restart) {
  const Monotonic deadline = clock.now() + settings.restart_patience;
  while (clock.now() < deadline) {
    ++restart.tries;
    const std::int64_t asked_ns = to_ns(clock.now());
    auto client = scene.enter_new_client();
    if (!client) return propagate(client);
    const Player& player = **client;
    const auto left = std::chrono::ceil<Milliseconds>(deadline - clock.now());
    const Status waited = scene.stage().wait("a new client's first kernel", left, [&player] {
      return player.ready_at_ns != 0 || player.actor->ended();
    });
    if (scene.stage().interrupted()) return waited;
    if (player.ready_at_ns != 0) {
      restart.asked_ms = times.after_launch_ms(asked_ns);
      restart.served_ms = times.after_launch_ms(player.ready_at_ns);
      return {};
    }
    restart.last_error = waited ? player.actor->record().last_words : to_string(waited.error());
  }
  return {};
}

/// Picks when a held process ends, as a share of its kernel's time. The seed decides, for this kind and
/// repeat.
double moment_of(std::uint64_t seed, const Run& run) {
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(run.repeat),
                      static_cast<std::uint32_t>(std::hash<std::string>{}(run.kind))};
  std::mt19937 chance(words);
  return static_cast<double>(chance()) / std::mt19937::max();
}

/// Plays the run from the faulter's start to everybody's end.
Status play(Scene& scene, const Settings& settings, const Expected& expected, const Clock& clock, Run& run) {
  const double end_after_share = settings.hold.count() > 0 ? moment_of(settings.seed, run) : 0;
  if (Status entered = scene.enter(expected.kind, end_after_share); !entered) return entered;
  if (Status begun = scene.begin_records(); !begun) return begun;
  Times times;
  if (Status raised = raise(scene, settings, expected, clock, times, run); !raised) return raised;
  if (Status again = restart(scene, settings, clock, times, run.restart); !again) return again;
  times.closing_ns = to_ns(clock.now());
  const Status ended = scene.end();
  if (scene.stage().interrupted()) return ended;
  if (!ended) run.notes.push_back(to_string(ended.error()));
  scene.watcher().finish();
  observe(scene, times, run);
  run.attribution = attribution_of(scene, times);
  if (const auto& release = scene.release())
    run.hold = HoldOutcome{end_after_share, to_ms(release->held), hold::describe(*release)};
  return {};
}

}  // namespace

Run run_once(const Settings& settings, const Expected& expected, int repeat, const Clock& clock,
             bool& interrupted) {
  Run run;
  run.kind = expected.kind;
  run.repeat = repeat;
  run.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  const Monotonic began = clock.now();
  {
    const auto scene = Scene::create(settings, clock);
    const Status played = scene ? play(**scene, settings, expected, clock, run) : propagate(scene);
    if (scene) {
      interrupted = (*scene)->stage().interrupted();
      run.memory_left_bytes = (*scene)->close();
      const auto& notes = (*scene)->notes();
      run.notes.insert(run.notes.begin(), notes.begin(), notes.end());
    }
    if (!played) {
      const bool refused = played.error().code == ErrorCode::Unsupported;
      (refused ? run.refused : run.problem) = to_string(played.error());
    }
  }
  run.took_ms = to_ms(clock.now() - began);
  run.mismatches = mismatches(run, expected);
  return run;
}

}  // namespace firebreak::characterize
