// SPDX-License-Identifier: Apache-2.0
/// Thousands of seeded lives of one domain: the state machine, the judge of dumps and the pipes are the real
/// ones, with real pipes between them. The driver, the tenants and the clock are a model, and so is the order
/// in which everything happens. What the agent does with an action is played as agent/parking/parking.cpp
/// does it. A ghost knows who really raised an exception. One seed replays a whole life.
///
/// The driver is that of an H100 (docs/how/parking.md): kernels that share the multiprocessor of the
/// exception stand still until the GPU takes a turn for another domain, or for 4 s. The agent's turns come
/// late, twice, in another order or not at all. What a bad pointer has held comes up again when the next
/// client ends.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/parking/park/core_dump_file.h"
#include "agent/parking/park/dump_pipe.h"
#include "agent/parking/park/parking.h"
#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/base/test_seed.h"
#include "tests/doubles/park/test_dump.h"

namespace firebreak::park {
namespace {

constexpr int begin_limit_ms = 2'000;
constexpr int name_limit_ms = 6'000;
constexpr int drain_limit_ms = 20'000;
constexpr int fall_limit_ms = 6'000;
/// The driver's, for kernels on the halted multiprocessor.
constexpr int halt_limit_ms = 4'000;
constexpr int between_turns_ms = 25;
constexpr int turns_max = 16;
/// The agent's own client. Tenants count up from it.
constexpr pid_t client_pid = 1;

/// The guilt of a process's kernels.
enum class Guilt { None, Early, Late, Trap };

const std::string& dump_of_a(Guilt guilt) {
  static const std::array<std::string, 4> dumps = {
      test::dump_of({test::sms(6),
                     test::warps(0, false),
                     test::lanes(0),
                     {".cudbg.relfimg.dev0", 7, 0, std::string(5'000, '\0')}}),
      test::dump_of(test::with_sms_after({test::sms(6), test::warps(2, false), test::lanes(6)})),
      test::dump_of({test::sms(6), test::warps(2, false), test::lanes(6)}),
      test::dump_of({test::sms(0), test::warps(2, true), test::lanes(0)}),
  };
  return dumps[static_cast<std::size_t>(guilt)];
}

/// One client of the domain, as the driver and Linux have it.
struct Process {
  std::string path;
  bool is_in_mode = true;
  Guilt guilt = Guilt::None;
  std::optional<int> dumps_at_ms = {};  ///< time since an exception in the domain
  std::optional<os::Fd> writer = {};    ///< its end of the pipe, while it dumps
  std::string rest = {};                ///< rest of its dump
  bool is_complete = false;             ///< its dump is written, so it goes on
  bool is_stolen = false;               ///< somebody else has read some of it
  bool hangs = false;                   ///< it hangs in the driver: nothing but its end helps
  bool is_frozen = false;               ///< its kernel is on the halted multiprocessor
};

/// The agent's knowledge of one process.
struct Dumper {
  std::optional<DumpPipe> pipe;
  bool is_in_mode = true;
  bool has_begun = false;
  bool is_read = false;
  bool is_done = false;
  bool is_named = false;
  bool is_held = false;
};

/// How often what was done of one park.
struct Counts {
  int condemned = 0;
  int left = 0;
  int released = 0;
};

class Life {
 public:
  Life(std::uint64_t seed, const std::string& folder) : random_(seed), folder_(folder) {
    start_client();
    for (int tenants = 2 + below(4); tenants > 0; --tenants) join();
  }
  ~Life() {
    for (const auto& [pid, process] : processes_) (void)::unlink(process.path.c_str());
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// Empty: no rule was broken.
  const std::string& broken() const { return broken_; }
  const std::vector<std::string>& history() const { return history_; }
  int parks() const { return parks_; }
  int named() const { return named_; }
  int fallen() const { return fallen_; }
  int thawed() const { return thawed_; }
  int frozen_to_the_limit() const { return frozen_to_the_limit_; }
  int came_up_again() const { return came_up_again_; }

  void step() {
    switch (below(25)) {
      case 0:
        return join();
      case 1:
        return raise();
      case 2:
        return raise_two();
      case 3:
        return leave();
      case 4:
        return once_in(3) ? kill_somebody() : pass(below(400));
      case 5:
        return once_in(3) ? lose_a_dump() : pass(below(60));
      case 6:
        return once_in(3) ? steal() : pass(below(60));
      case 7:
        return once_in(12) ? restart_agent() : pass(1 + below(2'000));
      case 8:
        return once_in(12) ? fall("another fault") : pass(below(30));
      case 9:
        return pass(below(8'000));
      case 10:
        return start_client();
      case 11:
        return once_in(4) ? hang() : pass(below(60));
      case 12:
        return once_in(12) ? happened({ParkingEventType::MemoryFault}) : pass(below(60));
      case 13:
        other_takes_turns_ = !once_in(4);
        return;
      default:
        return once_in(2) ? write_some() : serve_one();
    }
  }
  /// Nothing happens any more but that what is under way goes on, and time passes.
  void end() {
    for (int round = 0; round < 40 && broken_.empty(); ++round) {
      pump();
      if (is_parked(state_.phase)) look_whether_innocents_go_on();
      const bool is_calm = state_.phase == ParkingPhase::Off || state_.phase == ParkingPhase::Ready;
      if (is_calm && !exception_ms_) return look_at_the_end();
      pass(2'000);
    }
    check(false, std::string("a domain is ") + to_string(state_.phase) + " for ever");
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint64_t>(end)); }
  bool once_in(int times) { return below(times) == 0; }
  void note(const std::string& what) { history_.push_back(std::to_string(now_ms_) + " " + what); }
  void check(bool holds, const std::string& rule) {
    if (!holds && broken_.empty()) broken_ = rule;
  }

  // --- the domain, its driver and its tenants ---

  Process& enter(pid_t pid, bool is_in_mode) {
    Process process;
    process.path = folder_ + "/" + std::to_string(pid) + ".pipe";
    process.is_in_mode = is_in_mode;
    return processes_[pid] = std::move(process);
  }
  /// A domain takes who comes unless the agent has condemned it.
  void join() {
    if (is_condemned_ || processes_.size() > 6) return;
    check(!is_parked(state_.phase), "a condemned domain took somebody");
    const pid_t pid = ++last_pid_;
    const Process& process = enter(pid, !once_in(25));
    note("joins " + std::to_string(pid) + (process.is_in_mode ? "" : ", not in the mode"));
    follow(pid, process);
    // A process that comes to a domain that has raised an exception already dumps as all do.
    if (exception_ms_) processes_[pid].dumps_at_ms = now_ms_;
  }
  void start_client() {
    if (processes_.contains(client_pid) || state_.phase != ParkingPhase::Off || exception_ms_) return;
    const Process& process = enter(client_pid, true);
    client_ = DumpPipe::open(kernel_, process.path).value();
    client_has_begun_ = client_may_end_ = false;
    note("the parking client is ready");
    happened({ParkingEventType::ClientReady});
  }
  pid_t somebody() {
    const int skip = processes_.empty() ? 0 : below(static_cast<int>(processes_.size()));
    return processes_.empty() ? 0 : std::next(processes_.begin(), skip)->first;
  }
  /// Raises in a process that has not dumped yet, so that its own exception is in its dump.
  void raise() {
    const pid_t pid = somebody();
    if (pid == 0 || pid == client_pid) return;
    Process& process = processes_[pid];
    if (process.guilt != Guilt::None || process.writer || process.is_complete || !process.is_in_mode) return;
    process.guilt = static_cast<Guilt>(1 + below(3));
    note(std::to_string(pid) + " raises an exception");
    if (exception_ms_) return;
    exception_ms_ = now_ms_;
    is_bad_pointer_ = once_in(6);
    for (auto& [each, its] : processes_) {
      its.dumps_at_ms = now_ms_ + 45 + below(once_in(10) ? 4'000 : 30);
      its.is_frozen = each != client_pid && its.guilt == Guilt::None && once_in(2);
    }
  }
  /// The GPU takes no turn where nobody but the culprits has anything to do on it.
  void take_turn() {
    note("the GPU takes a turn");
    for (auto& [pid, process] : processes_) thawed_ += std::exchange(process.is_frozen, false) ? 1 : 0;
  }
  void take_due_turns() {
    const auto due = std::ranges::partition(turns_under_way_, [&](int at_ms) { return at_ms > now_ms_; });
    const auto count = due.size();
    turns_under_way_.erase(due.begin(), due.end());
    for (std::size_t turn = 0; turn < count; ++turn) take_turn();
    if (!exception_ms_ || *exception_ms_ + halt_limit_ms > now_ms_) return;
    for (auto& [pid, process] : processes_)
      frozen_to_the_limit_ += std::exchange(process.is_frozen, false) ? 1 : 0;
  }
  /// All stand still from then on, on an H100. The agent hears of it, or does not.
  void come_up_again(pid_t pid) {
    if (!exception_ms_ || !std::exchange(is_bad_pointer_, false)) return;
    note("the bad pointer comes up again, since " + std::to_string(pid) + " has ended");
    ++came_up_again_;
    is_halted_for_good_ = true;
    if (once_in(4)) return note("and nobody hears of it");
    const bool was_held = state_.phase == ParkingPhase::Held;
    happened({ParkingEventType::MemoryFault});
    check(!was_held || !holds(), "everybody stands still, and the domain is held on");
  }
  void raise_two() {
    raise();
    raise();
  }
  /// Done with its work, or handed over: who stands still cannot.
  void leave() {
    const pid_t pid = somebody();
    if (pid == 0 || pid == client_pid) return;
    const Process& process = processes_[pid];
    const bool is_free = process.is_complete && !process.is_frozen && !is_halted_for_good_;
    if (process.guilt != Guilt::None || (exception_ms_ && !is_free)) return;
    note(std::to_string(pid) + " leaves");
    gone(pid);
  }
  void kill_somebody() {
    const pid_t pid = somebody();
    if (pid == 0) return;
    note("somebody kills " + std::to_string(pid));
    gone(pid);
  }
  void gone(pid_t pid) {
    auto process = processes_.extract(pid);
    if (!process) return;
    process.mapped().writer.reset();
    if (pid == client_pid) {
      on_client_exit();
    } else {
      on_exit(pid);
    }
    (void)::unlink(process.mapped().path.c_str());
    if (pid != client_pid && process.mapped().guilt == Guilt::None) come_up_again(pid);
    look_whether_it_falls();
  }
  void begin_due_dumps() {
    for (auto& [pid, process] : processes_) {
      if (!process.dumps_at_ms || *process.dumps_at_ms > now_ms_ || !process.is_in_mode) continue;
      process.dumps_at_ms.reset();
      process.writer = os::Fd(::open(process.path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      process.rest = dump_of_a(process.guilt);
      if (!*process.writer) process.writer.reset();  // nobody reads: it waits in open()
      note(std::to_string(pid) + " begins to dump");
    }
  }
  void write_some() {
    const pid_t pid = somebody();
    if (pid != 0) write_some(pid, 1 + static_cast<std::size_t>(below(5'000)));
  }
  void write_some(pid_t pid, std::size_t most) {
    Process& process = processes_[pid];
    if (!process.writer || process.hangs) return;
    const ssize_t wrote =
        ::write(process.writer->get(), process.rest.data(), std::min(most, process.rest.size()));
    if (wrote < 0 && errno != EAGAIN) return complete(pid, process);  // its reader is gone
    if (wrote > 0) process.rest.erase(0, static_cast<std::size_t>(wrote));
    if (process.rest.empty()) complete(pid, process);
  }
  void complete(pid_t pid, Process& process) {
    process.writer.reset();
    process.is_complete = true;
    note("the dump of " + std::to_string(pid) + " is complete");
    if (process.guilt == Guilt::Early && !process.is_stolen && process.rest.empty())
      check(!is_parked(state_.phase), "a culprit got out of its dump while others had still time");
    look_whether_it_falls();
  }
  void lose_a_dump() {
    const pid_t pid = somebody();
    if (pid == 0 || !processes_[pid].writer) return;
    note("a dump is lost");
    processes_[pid].is_stolen = true;
    complete(pid, processes_[pid]);
  }
  /// One of those whom the agent can end hangs: a culprit did so on an H100.
  void hang() {
    const pid_t pid = somebody();
    const bool is_client = pid == client_pid && state_.phase == ParkingPhase::Released;
    if (pid == 0 || (!is_client && !is_culprit(pid))) return;
    note(std::to_string(pid) + " hangs");
    processes_[pid].hangs = true;
  }
  /// A second reader.
  void steal() {
    const pid_t pid = somebody();
    if (pid == 0 || !processes_[pid].writer) return;
    const os::Fd reader(::open(processes_[pid].path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    std::array<char, 700> bytes;
    if (::read(reader.get(), bytes.data(), bytes.size()) <= 0) return;
    note("somebody else reads of the dump of " + std::to_string(pid));
    processes_[pid].is_stolen = true;
  }
  /// The driver resets the domain when all dumps of those who live are complete.
  void look_whether_it_falls() {
    const bool is_over = std::ranges::all_of(
        processes_, [](const auto& each) { return each.second.is_complete || !each.second.is_in_mode; });
    if (exception_ms_ && is_over) fall("the reset");
  }
  void fall(const std::string& why) {
    note("the domain falls: " + why);
    ++fallen_;
    exception_ms_.reset();
    is_bad_pointer_ = is_halted_for_good_ = false;
    happened({ParkingEventType::Fell});
    while (!processes_.empty()) gone(processes_.rbegin()->first);
    doomed_.clear();
    note("all its clients are gone");
  }
  void restart_agent() {
    note("the agent ends, and another one comes");
    dumpers_.clear();
    client_.reset();
    state_ = {};
    counts_ = {};
    limit_ms_.reset();
    reading_ms_.reset();
    is_read_ = is_leaving_ = is_condemned_ = false;
    next_turn_ms_.reset();
    turns_ = 0;
    if (auto client = processes_.extract(client_pid)) (void)::unlink(client.mapped().path.c_str());
    if (exception_ms_) return fall("nobody holds it");
    for (const auto& [pid, process] : processes_) follow(pid, process);
  }
  void pass(int ms) {
    for (const int end_ms = now_ms_ + ms; now_ms_ < end_ms && broken_.empty();) {
      now_ms_ += std::min(end_ms - now_ms_, between_turns_ms);
      for (const pid_t pid : std::exchange(doomed_, {})) gone(pid);
      begin_due_dumps();
      take_due_turns();
      if (next_turn_ms_ && *next_turn_ms_ <= now_ms_) let_others_take_a_turn();
      look_whether_turns_are_asked_for();
      if (reading_ms_ && *reading_ms_ <= now_ms_) read_all();
      if (is_leaving_) look_whether_all_left();
      check(!is_leaving_ || state_.phase != ParkingPhase::Held || is_somebody_left(),
            "a domain is held for nobody");
      if (limit_ms_ && *limit_ms_ <= now_ms_) {
        limit_ms_.reset();
        happened({ParkingEventType::Deadline});
      }
    }
  }

  // --- the agent, as agent/parking/parking.cpp does it ---

  bool is_culprit(pid_t pid) const { return state_.is_culprit(pid); }
  bool holds() const { return is_parked(state_.phase); }
  void follow(pid_t pid, const Process& process) {
    Dumper& dumper = dumpers_[pid];
    dumper.is_in_mode = process.is_in_mode;
    if (process.is_in_mode) dumper.pipe = DumpPipe::open(kernel_, process.path).value();
  }
  bool all_in_mode() const {
    return std::ranges::all_of(dumpers_, [](const auto& each) { return each.second.is_in_mode; });
  }
  /// One readable pipe, as the loop would find it.
  void serve_one() {
    const pid_t pid = somebody();
    if (pid != 0) serve(pid);
  }
  /// False: there was nothing to do.
  bool serve(pid_t pid) {
    if (pid == client_pid) return serve_client();
    const auto found = dumpers_.find(pid);
    if (found == dumpers_.end() || !found->second.pipe) return false;
    Dumper& dumper = found->second;
    if (!dumper.has_begun) return is_readable(dumper.pipe->fd()) && (on_dump(dumper), true);
    const bool is_watched =
        dumper.is_read && !dumper.is_held && dumper.pipe->state() != DumpPipe::State::Done;
    if (!is_watched || !is_readable(dumper.pipe->fd())) return false;
    const DumpPipe::State state = dumper.pipe->read();
    if (state == DumpPipe::State::Nearly) {
      judge_early(pid, dumper);
    } else if (state == DumpPipe::State::Done) {
      dumper.is_done = true;
      judge(pid, dumper);
    }
    return true;
  }
  static bool is_readable(int fd) {
    pollfd asked{fd, POLLIN, 0};
    return ::poll(&asked, 1, 0) > 0 && asked.revents != 0;
  }
  bool serve_client() {
    if (!client_ || !is_readable(client_->fd())) return false;
    if (!client_has_begun_) {
      client_has_begun_ = true;
      began();
      look_whether_all_began();
      return true;
    }
    if (!client_may_end_ || client_->state() == DumpPipe::State::Done) return false;
    if (client_->read() == DumpPipe::State::Done) let_culprits_end();
    return true;
  }
  void on_dump(Dumper& dumper) {
    dumper.has_begun = true;
    began();
    if (is_read_) {
      dumper.is_read = true;
    } else {
      look_whether_all_began();
    }
  }
  void began() { happened({all_in_mode() ? ParkingEventType::DumpBegan : ParkingEventType::BeganPartly}); }
  void look_whether_all_began() {
    if (is_read_) return;
    bool somebody = client_has_begun_;
    bool all = client_has_begun_ || !client_;
    for (const auto& [pid, dumper] : dumpers_) {
      if (!dumper.is_in_mode) continue;
      somebody |= dumper.has_begun;
      all &= dumper.has_begun;
    }
    if (!somebody) return;
    if (all) return read_all();
    if (reading_ms_) return;
    reading_ms_ = now_ms_ + begin_limit_ms;
    begin_to_thaw();
  }
  void begin_to_thaw() { next_turn_ms_ = now_ms_ + between_turns_ms; }
  void let_others_take_a_turn() {
    next_turn_ms_ = now_ms_ + between_turns_ms;
    if (++turns_ >= turns_max || !holds()) next_turn_ms_.reset();
    check(turns_ <= turns_max + 1, "the GPU takes turns without end");
    was_turn_asked_ = true;
    if (!other_takes_turns_) return note("a turn is lost");
    for (int times = once_in(10) ? 2 : 1; times > 0; --times)
      turns_under_way_.push_back(now_ms_ + (once_in(5) ? below(600) : below(between_turns_ms)));
  }
  /// Turns are not asked for before somebody could be frozen, and are soon after everybody's dump may end.
  void look_whether_turns_are_asked_for() {
    const bool had_time =
        state_.phase == ParkingPhase::Held && now_ms_ > phase_since_ms_ + 2 * between_turns_ms;
    check(!had_time || was_turn_asked_, "a domain is held, and the GPU takes no turns");
  }
  void read_all() {
    reading_ms_.reset();
    is_read_ = true;
    for (auto& [pid, dumper] : dumpers_) dumper.is_read |= dumper.has_begun && !dumper.is_done;
  }
  void judge_early(pid_t pid, Dumper& dumper) {
    const auto exception = own_exception_in_beginning(dumper.pipe->bytes());
    if (!exception || !holds()) return dumper.pipe->let_end();
    dumper.is_held = dumper.is_done = dumper.is_named = true;
    name(pid);
    look_whether_all_dumped();
  }
  void judge(pid_t pid, Dumper& dumper) {
    const auto exception = own_exception_in(dumper.pipe->bytes());
    const bool is_named = exception && *exception && !std::exchange(dumper.is_named, true);
    const bool is_to_end = is_named && holds() && (**exception).type != "TRAP";
    dumper.pipe->clear();
    if (is_named) name(pid);
    look_whether_all_dumped();
    if (is_to_end) gone(pid);  // the process might get a result
  }
  void name(pid_t pid) {
    const auto process = processes_.find(pid);
    const bool is_guilty = process != processes_.end() && process->second.guilt != Guilt::None;
    check(is_guilty, "process " + std::to_string(pid) + " was named, and did nothing");
    ++named_;
    check(told_.insert(pid).second, "a culprit was told twice");
    if (!all_in_mode() || is_culprit(pid)) return;
    happened({ParkingEventType::Named, pid});
  }
  void let_culprits_end() {
    for (auto& [pid, dumper] : dumpers_) {
      if (std::exchange(dumper.is_held, false)) dumper.pipe->let_end();
    }
  }
  void on_exit(pid_t pid) {
    if (!dumpers_.extract(pid)) return;
    const bool is_culprits_end = state_.phase == ParkingPhase::Held && is_culprit(pid);
    happened({ParkingEventType::CulpritGone, pid});
    check(!is_culprits_end || !holds(), "its neighbours stand still beside a culprit that is gone");
    look_whether_all_began();
    look_whether_all_dumped();
  }
  void on_client_exit() {
    client_.reset();
    client_has_begun_ = client_may_end_ = false;
    let_culprits_end();
    happened({ParkingEventType::ClientGone});
  }
  void look_whether_all_dumped() {
    const bool all = std::ranges::all_of(
        dumpers_, [](const auto& each) { return !each.second.is_in_mode || each.second.is_done; });
    if (all) happened({ParkingEventType::AllDumped});
  }
  bool is_somebody_left() const {
    return std::ranges::any_of(dumpers_, [&](const auto& each) { return !is_culprit(each.first); });
  }
  void look_whether_all_left() {
    if (!is_somebody_left()) happened({ParkingEventType::EverybodyLeft});
  }
  void happened(const ParkingEvent& event) {
    ParkingStep step = advance(state_, event);
    if (step.state.phase != state_.phase)
      note(std::string(to_string(event.type)) + ": " + to_string(step.state.phase));
    const bool was_parked = is_parked(state_.phase);
    if (!was_parked && is_parked(step.state.phase)) ++parks_;
    if (was_parked && step.state.phase == ParkingPhase::Released) look_at_the_release(event);
    if (step.state.phase != state_.phase) phase_since_ms_ = now_ms_;
    const bool is_parked_partly = event.type == ParkingEventType::BeganPartly && !was_parked;
    state_ = std::move(step.state);
    for (const ParkingAction action : step.actions) act(action);
    check(is_condemned_ || !is_parked(state_.phase), "a parked domain takes clients");
    check(!is_parked(state_.phase) || limit_ms_, "a parked domain has no limit");
    check(!is_parked_partly || !is_parked(state_.phase), "it is parked, and not all are in the mode");
    check(state_.phase != ParkingPhase::Released || (limit_ms_ && *limit_ms_ <= now_ms_ + fall_limit_ms),
          "a domain has longer to fall than it may");
  }
  /// The others have left, had their time, or cannot go on: nothing else lets a domain fall.
  void look_at_the_release(const ParkingEvent& event) {
    const bool is_culprits_end = event.type == ParkingEventType::CulpritGone && is_culprit(event.pid);
    check(event.type == ParkingEventType::Deadline || event.type == ParkingEventType::EverybodyLeft ||
              event.type == ParkingEventType::ClientGone || event.type == ParkingEventType::MemoryFault ||
              is_culprits_end,
          std::string("a domain was let fall by: ") + to_string(event.type));
    const int limit_ms = state_.phase == ParkingPhase::Held ? drain_limit_ms : name_limit_ms;
    const int had_ms = now_ms_ - phase_since_ms_;
    check(event.type != ParkingEventType::Deadline || (had_ms >= limit_ms && had_ms < limit_ms + 100),
          "the others had " + std::to_string(had_ms) + " ms, and not what was said");
    if (event.type != ParkingEventType::EverybodyLeft) return;
    for (const auto& [pid, process] : processes_)
      check(pid == client_pid || is_culprit(pid), "it was let fall under " + std::to_string(pid));
  }
  void act(ParkingAction action) {
    switch (action) {
      case ParkingAction::Condemn:
        is_condemned_ = true;
        return check(++counts_.condemned == 1, "it was condemned twice");
      case ParkingAction::StartNameLimit:
        return start_limit(name_limit_ms);
      case ParkingAction::StartDrainLimit:
        return start_limit(drain_limit_ms);
      case ParkingAction::StartFallLimit:
        is_leaving_ = false;
        return start_limit(fall_limit_ms);
      case ParkingAction::Leave:
        is_leaving_ = true;
        begin_to_thaw();
        return check(++counts_.left == 1, "it was left twice");
      case ParkingAction::Release:
        check(++counts_.released == 1, "it was released twice");
        client_may_end_ = true;
        if (client_) return client_->let_end();
        return let_culprits_end();
      case ParkingAction::EndClient:
        return end_client();
      case ParkingAction::Forget:
        return forget();
    }
  }
  void start_limit(int ms) { limit_ms_ = now_ms_ + ms; }
  void end_client() {
    doomed_ = state_.culprits;
    doomed_.push_back(client_pid);
  }
  void forget() {
    limit_ms_.reset();
    reading_ms_.reset();
    is_read_ = is_leaving_ = is_condemned_ = was_turn_asked_ = false;
    counts_ = {};
    next_turn_ms_.reset();
    turns_ = 0;
    let_culprits_end();
  }

  // --- rules of a whole life ---

  /// Everything that can go on without time does.
  void pump() {
    int rounds = 0;
    for (bool is_any = true; is_any && broken_.empty();) {
      is_any = false;
      check(++rounds < 10'000, "what is readable is never read to its end");
      for (const pid_t pid : std::exchange(doomed_, {})) gone(pid);
      std::vector<pid_t> all;
      for (const auto& [pid, process] : processes_) all.push_back(pid);
      for (const pid_t pid : all) {
        const auto process = processes_.find(pid);
        if (process == processes_.end()) continue;
        const std::size_t before = process->second.rest.size();
        write_some(pid, before);
        const auto after = processes_.find(pid);
        is_any |= after == processes_.end() || after->second.rest.size() != before;
        is_any |= serve(pid);
      }
    }
  }
  /// Processes whose kernels did nothing wrong are not kept in their dumps while the culprit is.
  void look_whether_innocents_go_on() {
    if (!is_read_) return;
    for (const auto& [pid, process] : processes_) {
      const bool is_innocent = pid != client_pid && process.guilt == Guilt::None;
      check(!is_innocent || !process.writer, std::to_string(pid) + " is kept in its dump, and did nothing");
    }
  }
  void look_at_the_end() {
    for (const auto& [pid, process] : processes_)
      check(!process.writer, std::to_string(pid) + " is kept in its dump for ever");
    check(!limit_ms_ && !is_condemned_, "a domain that is not parked is still condemned");
  }

  std::mt19937_64 random_;
  const std::string folder_;
  os::RealKernel kernel_;
  int now_ms_ = 0;
  pid_t last_pid_ = client_pid;
  std::map<pid_t, Process> processes_;
  std::optional<int> exception_ms_;  ///< time since which the driver waits for dumps
  bool is_bad_pointer_ = false;      ///< the exception, and it has not come up again
  bool is_halted_for_good_ = false;
  std::vector<int> turns_under_way_;  ///< times at which the GPU takes them
  bool other_takes_turns_ = true;     ///< the agent's client in the other domain

  ParkingState state_;
  std::map<pid_t, Dumper> dumpers_;
  std::optional<DumpPipe> client_;
  bool client_has_begun_ = false;
  bool client_may_end_ = false;
  bool is_read_ = false;
  bool is_leaving_ = false;
  bool is_condemned_ = false;
  std::optional<int> limit_ms_;
  std::optional<int> reading_ms_;
  std::optional<int> next_turn_ms_;
  int turns_ = 0;
  bool was_turn_asked_ = false;
  std::vector<pid_t> doomed_;  ///< SIGKILL is on its way
  Counts counts_;
  std::set<pid_t> told_;

  int phase_since_ms_ = 0;
  int parks_ = 0;
  int named_ = 0;
  int fallen_ = 0;
  int thawed_ = 0;
  int frozen_to_the_limit_ = 0;
  int came_up_again_ = 0;
  std::string broken_;
  std::vector<std::string> history_;
};

TEST(ParkingSchedules, NoOrderOfWhatHappensBreaksARule) {
  constexpr int lives = 10'000;
  constexpr int steps = 80;
  std::signal(SIGPIPE, SIG_IGN);
  const auto directory = os::TemporaryDirectory::create();
  ASSERT_TRUE(directory) << to_string(directory.error());
  const std::uint64_t seed = test_seed();
  int parks = 0, named = 0, fallen = 0, thawed = 0, frozen_to_the_limit = 0, came_up_again = 0;
  for (int number = 0; number < lives; ++number) {
    Life life(seed + static_cast<std::uint64_t>(number), directory->path());
    for (int step = 0; step < steps && life.broken().empty(); ++step) life.step();
    if (life.broken().empty()) life.end();
    ASSERT_EQ(life.broken(), "") << "FIREBREAK_TEST_SEED=" << seed + static_cast<std::uint64_t>(number)
                                 << "\n"
                                 << testing::PrintToString(life.history());
    parks += life.parks();
    named += life.named();
    fallen += life.fallen();
    thawed += life.thawed();
    frozen_to_the_limit += life.frozen_to_the_limit();
    came_up_again += life.came_up_again();
  }
  // The lives are worth something only where what they are about happens in them.
  EXPECT_GT(parks, lives / 2);
  EXPECT_GT(named, lives / 4);
  EXPECT_GT(fallen, lives / 4);
  EXPECT_GT(thawed, lives / 4);
  EXPECT_GT(frozen_to_the_limit, lives / 100);
  EXPECT_GT(came_up_again, lives / 100);
}

}  // namespace
}  // namespace firebreak::park
