// SPDX-License-Identifier: Apache-2.0
/// The core dump mode of processes, by their environment or by the driver's calls, and the pipes that the
/// dumps go to.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "agent/parking/parking.h"
#include "ground/base/text.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/self.h"
#include "shared/dump_mode/mode.h"

namespace firebreak::agent {
namespace {

/// So long nobody is told of a process that does not let itself be looked at. It is looked at after that,
/// too.
constexpr Milliseconds doubt_limit{5'000};
/// Shortest time between two looks at everybody for whose dump it is that came in a pipe that was given out.
constexpr Milliseconds between_looks_for_unknown{1'000};

constexpr std::string_view by_calls = "by-calls-";

/// "by-calls-4711-1234567"
std::string begin_of_pipe_by_calls(pid_t pid, const std::string& start_time) {
  return fmt::format("{}{}-{}", by_calls, pid, start_time);
}

/// Length of a process's own word.
constexpr std::size_t longest_word = 200;

}  // namespace

/// Nobody knows it beforehand: whoever had made it would read another's dump, and could write one.
Result<std::string> Parking::new_pipe_path(const std::string& begin) {
  constexpr std::size_t letters = 16;
  const auto token = os::random_token();
  if (!token) return propagate(token);
  return fmt::format("{}/{}-{}.pipe", at_.options.dump_pipe_directory(), begin, token->substr(0, letters));
}

/// Makes the pipe before the process is there: its reader comes with follow(). A client that cannot open its
/// own ends the others with an error (H100).
Status Parking::make_pipe(const std::string& path, uid_t user) {
  Status made = os::make_fifo(path);
  if (!made) return made;
  made = give(path, user);
  if (!made) (void)os::remove_file(path);
  return made;
}

/// Whoever is not root reads a pipe of others as a member of the pipe's group, which is its own.
Status Parking::give(const std::string& path, uid_t user) const {
  const auto pipe = os::find_file(path);
  if (!pipe) return propagate(pipe);
  const auto facts = os::facts_of(*pipe);
  if (!facts) return propagate(facts);
  if (facts->owner == user) return {};
  const Status opened = os::is_root() ? Status{} : os::let_group_read(path);
  return opened ? at_.kernel.give_file(*pipe, user) : opened;
}

Status Parking::mark_pipe(const std::string& path, bool is_marked) {
  const auto pipe = os::find_file(path);
  return pipe ? at_.kernel.mark_fifo(*pipe, is_marked) : Status(propagate(pipe));
}

std::string Parking::new_dump_path(const std::string& domain, uid_t user, std::uint64_t connection) {
  if (!is_on() || !places_.contains(domain)) return {};
  const auto path = new_pipe_path(fmt::format("{}-{}", os::own_pid(), next_pipe_++));
  const Status made = path ? make_pipe(*path, user) : propagate(path);
  if (made) await_dump_in(*path, connection);
  if (made) return *path;
  spdlog::warn("a process in domain {} will not be in the core dump mode: {}", domain,
               to_string(made.error()));
  return {};
}

Result<std::string> Parking::offer_pipe(pid_t pid, uid_t user) {
  if (!is_on()) return std::string();
  const auto its =
      std::ranges::find_if(dumpers_, [pid](const auto& each) { return each.first.first == pid; });
  if (its == dumpers_.end())
    return fail(ErrorCode::NotYet, fmt::format("process {} is nobody's client yet", pid));
  Dumper& dumper = its->second;
  if (!dumper.path.empty() && !is_by_calls(dumper.path)) return std::string();
  // Whoever asks is not in the mode, whatever it has said before: its process may have another program by
  // now.
  if (!dumper.path.empty()) withdraw(dumper);
  if (!dumper.offered.empty()) return dumper.offered;
  auto path = new_pipe_path(begin_of_pipe_by_calls(pid, start_time_of(at_.kernel, pid)));
  if (!path) return path;
  if (const Status made = make_pipe(*path, user); !made) return propagate(made);
  dumper.offered = *path;
  await_dump_in(*path, 0);
  return path;
}

/// Whoever opens it stands still until somebody reads: so there is a reader from the beginning, whatever
/// comes of the word of who is in the mode.
void Parking::await_dump_in(const std::string& path, std::uint64_t connection) {
  const auto file = os::find_file(path);
  const auto facts = file ? os::facts_of(*file) : propagate(file);
  const uid_t user = facts ? facts->owner : uid_t{0};  // whose process it is for
  auto pipe = park::DumpPipe::open(at_.kernel, path, budgets_.of(user));
  if (!pipe) return spdlog::error("{} cannot be read: {}", path, to_string(pipe.error()));
  Given& given = given_[path];
  given.connection = connection;
  given.pipe = std::move(*pipe);
  watch_given(path, given);
}

void Parking::watch_given(const std::string& path, Given& given) {
  auto watch = at_.loop.watch_readable(given.pipe->fd(), [this, path] { on_dump_of_unknown(path); });
  if (watch) given.watch = std::move(*watch);
}

/// Its process is in the mode, whatever it has said so far or let see of itself.
void Parking::on_dump_of_unknown(const std::string& of) {
  const std::string path = of;  // the watch that calls us goes
  Given& given = given_.at(path);
  given.watch.cancel();
  if (!given.began_at) given.began_at = at_.clock.now();
  for (auto& [who, dumper] : dumpers_) {
    if (dumper.offered == path) return take_its_word(who, dumper);
  }
  look_for_unknown();
  if (!given_.contains(path)) return;                                  // it was one's who is known now
  if (at_.clock.now() - *given.began_at < unknown_dump_limit) return;  // it may be about to come
  const auto level = std::exchange(given.is_told, true) ? spdlog::level::debug : spdlog::level::warn;
  spdlog::log(level, "a core dump in {} is nobody's that is known", path);
  given.pipe->let_end();
  empty_given(path);
}

/// Looks whether somebody has a pipe who was not known to. One look at everybody serves all pipes: whoever
/// was given many may write into each.
void Parking::look_for_unknown() {
  const Monotonic now = at_.clock.now();
  if (looked_for_unknown_ && now - *looked_for_unknown_ < between_looks_for_unknown) return;
  looked_for_unknown_ = now;
  for (auto& [who, dumper] : dumpers_) {
    if (dumper.path.empty()) look_at(who, dumper, false);
  }
}

void Parking::empty_given(const std::string& path) {
  Given& given = given_.at(path);
  const bool is_over = given.pipe->read() == park::DumpPipe::State::Done;
  given.pipe->clear();
  if (is_over) return await_dump_in(path, given.connection);
  given.is_emptied = true;
  if (given.watch) return;
  auto watch = at_.loop.watch_readable(given.pipe->fd(), [this, path] { empty_given(std::string(path)); });
  if (watch) given.watch = std::move(*watch);
}

void Parking::on_closed(std::uint64_t connection) {
  for (auto& [path, given] : given_) given.is_given_up |= connection != 0 && given.connection == connection;
}

/// Of those whom nobody has come for: but somebody may have come who is not known well enough yet.
void Parking::forget_given_up() {
  if (std::ranges::any_of(dumpers_, [](const auto& each) { return each.second.is_in_doubt; })) return;
  std::erase_if(given_, [](const auto& each) {
    const bool is_over = each.second.is_given_up && !each.second.began_at;
    if (is_over) (void)os::remove_file(each.first);
    return is_over;
  });
}

void Parking::withdraw(Dumper& dumper) {
  dumper.watch.cancel();
  dumper.pipe.reset();
  dumper.turn = Turn::None;
  dumper.dump = Dump::NotBegun;
  dumper.offered = std::exchange(dumper.path, {});
  (void)mark_pipe(dumper.offered, false);
  await_dump_in(dumper.offered, 0);
}

bool Parking::is_by_calls(const std::string& path) {
  return path.substr(path.rfind('/') + 1).starts_with(by_calls);
}

/// Of processes that ended while no agent was there. Whose the others are is known once who lives is
/// followed.
void Parking::remove_pipes_of_the_dead() {
  for (const std::string& name :
       at_.kernel.list_directory(at_.options.dump_pipe_directory()).value_or(std::vector<std::string>())) {
    const std::string path = at_.options.dump_pipe_directory() + "/" + name;
    if (!is_by_calls(name)) {
      if (name.ends_with(".pipe")) pipes_before_.push_back(path);
      continue;
    }
    const pid_t pid = std::atoi(name.c_str() + by_calls.size());
    if (pipe_by_calls(pid) != path) (void)os::remove_file(path);
  }
  claiming_ = at_.loop.after_or_now(at_.options.returns_within, [this] { remove_pipes_of_nobody(); });
}

/// Whoever was told to come by the agent before has come by now, or does not.
void Parking::remove_pipes_of_nobody() {
  if (std::ranges::any_of(dumpers_, [](const auto& each) { return each.second.is_in_doubt; })) {
    claiming_ = at_.loop.after_or_now(doubt_limit, [this] { remove_pipes_of_nobody(); });
    return;
  }
  for (const std::string& path : std::exchange(pipes_before_, {})) {
    const bool is_somebodys = std::ranges::any_of(
        dumpers_, [&](const auto& each) { return each.second.path == path || each.second.offered == path; });
    if (!is_somebodys) (void)os::remove_file(path);
  }
}

void Parking::give_pipes(pid_t pid, std::vector<std::string> paths) { pipes_of_[pid] = std::move(paths); }

void Parking::remove_pipes(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    given_.erase(path);
    (void)os::remove_file(path);
  }
}

/// Its name says whose it is, so that the next agent needs no other word of it.
std::string Parking::pipe_by_calls(pid_t pid) const {
  const std::string start_time = start_time_of(at_.kernel, pid);
  if (start_time.empty()) return {};
  const std::string begin = begin_of_pipe_by_calls(pid, start_time) + "-";
  for (const std::string& name :
       at_.kernel.list_directory(at_.options.dump_pipe_directory()).value_or(std::vector<std::string>())) {
    if (name.starts_with(begin)) return at_.options.dump_pipe_directory() + "/" + name;
  }
  return {};
}

void Parking::on_mode_by_calls(pid_t pid, const std::string& why_not) {
  for (auto& [who, dumper] : dumpers_) {
    if (who.first != pid || dumper.offered.empty()) continue;
    const std::string path = std::exchange(dumper.offered, {});
    if (!why_not.empty() || !is_its_pipe(pid, path)) {
      (void)os::remove_file(path);
      given_.erase(path);
      tell(who.second, pid,
           fmt::format("{} cannot be in the core dump mode: {}", name_of(pid),
                       why_not.empty() ? "its pipe is not its user's" : printable(why_not, longest_word)));
      continue;
    }
    enter_by_calls(who, dumper, path);
  }
}

void Parking::enter_by_calls(const InDomain& who, Dumper& dumper, const std::string& path) {
  // The next agent looks for that.
  if (const Status marked = mark_pipe(path, true); !marked)
    spdlog::warn("the next agent will not know of {}: {}", name_of(who.first), to_string(marked.error()));
  tell(who.second, who.first,
       fmt::format("{} is in the core dump mode by the driver's calls", name_of(who.first)));
  enter(who, dumper, path);
}

/// It has not said that it is in the mode, but it dumps: its word was lost.
void Parking::take_its_word(const InDomain& who, Dumper& dumper) {
  const std::string path = std::exchange(dumper.offered, {});
  enter_by_calls(InDomain(who), dumper, path);
}

/// The path is the process's own word: only a pipe in our folder itself, and its user's. None is made for it,
/// so that whatever is there has the name that an agent gave it.
bool Parking::is_its_pipe(pid_t pid, const std::string& path) const {
  const std::string ours = at_.options.dump_pipe_directory() + "/";
  if (!path.starts_with(ours)) return false;
  const std::string_view name = std::string_view(path).substr(ours.size());
  const bool is_in_it = name.ends_with(".pipe") && name.find('/') == std::string_view::npos;
  const auto status = at_.kernel.read_file(os::proc_folder(pid) + "/status");
  const auto user = os::user_in(status.value_or(""));
  if (!is_in_it || !user) return false;
  return os::is_fifo_of(path, *user);
}

/// A process of ours has the environment of `firebreak run` until it begins its program.
void Parking::look_at(const InDomain& who, Dumper& dumper, bool for_good) {
  const auto& [pid, domain] = who;
  const auto environment = at_.kernel.read_memory_file(os::proc_folder(pid) + "/environ");
  const bool is_not_answered = !environment && environment.error().code == ErrorCode::Timeout;
  if (is_not_answered && (at_.clock.now() - dumper.since <= doubt_limit || dumper.is_out)) return;
  const auto spare = SpareEnvironment::in(environment.value_or(""));
  std::string path = environment ? park::dump_path_in(*environment) : std::string();
  bool has_spare = false;
  for (std::size_t i = 0; spare && i < spare->dumps.size(); ++i) {
    const bool is_of_it = at_.domains.with_pipe_directory(spare->domains[i]) == domain;
    if (spare->dumps[i].empty() || !is_of_it) continue;
    path = spare->dumps[i];
    has_spare = true;
  }
  if (std::string by_its_calls = path.empty() ? pipe_by_calls(pid) : std::string(); !by_its_calls.empty())
    (os::is_marked_fifo(by_its_calls) ? path : dumper.offered) = by_its_calls;
  const pid_t other = other_with(path, who);
  if (other != 0 || !is_its_pipe(pid, path)) {
    if (!for_good && other == 0) return;
    dumper.is_in_doubt = is_not_answered;
    dumper.is_out = true;
    // A driver that is ours dumps nowhere then (program/virtual/process.h).
    dumper.has_anothers_pipe = other != 0 && !spare;
    const std::string what = dumper.has_anothers_pipe
                                 ? fmt::format("domain {} is not parked while it is there", domain)
                                 : fmt::format("an exception in domain {} ends it", domain);
    if (!is_known_in(pid, domain)) return;  // who would be harmed is told once it is
    tell(domain, pid,
         fmt::format("process {} is not in the core dump mode{}: {}", name_of(pid),
                     other == 0 ? "" : " with a pipe of its own, but has that of " + name_of(other), what));
    return;
  }
  dumper.has_spare = has_spare;
  enter(who, dumper, path);
  for (std::size_t i = 0; spare && i < spare->dumps.size(); ++i) {
    const std::string its = at_.domains.with_pipe_directory(spare->domains[i]);
    if (its == domain || !places_.contains(its) || !may_be_in(pid, its)) continue;
    if (!is_its_pipe(pid, spare->dumps[i]) || other_with(spare->dumps[i], {pid, its}) != 0) continue;
    Dumper& there = dumpers_[{pid, its}];
    there.path = spare->dumps[i];
    there.has_gpu = dumper.has_gpu;
    there.is_in_doubt = false;
    there.has_spare = true;
    open_pipe({pid, its}, there);
  }
}

std::vector<std::string> Parking::not_in_mode(const std::string& domain) const {
  std::vector<std::string> all;
  for (const auto& [who, dumper] : dumpers_) {
    const bool is_out = dumper.path.empty() && (dumper.is_out || !dumper.is_in_doubt);
    if (who.second == domain && is_out && is_known_in(who.first, domain)) all.push_back(name_of(who.first));
  }
  return all;
}

std::vector<std::string> Parking::in_the_way(const std::string& domain) const {
  std::vector<std::string> all;
  for (const auto& [who, dumper] : dumpers_) {
    const bool is_in_the_way = dumper.path.empty() && dumper.has_anothers_pipe;
    if (who.second == domain && is_in_the_way && is_known_in(who.first, domain))
      all.push_back(name_of(who.first));
  }
  return all;
}

std::string Parking::why_lost_in(const std::string& domain, pid_t pid) const {
  const auto place = places_.find(domain);
  if (!is_on() || place == places_.end()) return "domains are not parked: firebreakd --park-s";
  if (!in_the_way(domain).empty())
    return fmt::format("a process in domain {} dumps into another's pipe", domain);
  if (place->second.state.phase == park::ParkingPhase::Off)
    return fmt::format("domain {} has no parking client yet", domain);
  if (place->second.state.phase != park::ParkingPhase::Ready)
    return fmt::format("domain {} has had an exception", domain);
  const auto its = dumpers_.find({pid, domain});
  const bool is_in_mode = its != dumpers_.end() && !its->second.path.empty();
  return is_in_mode ? "" : "it is not in the core dump mode";
}

/// A child has its parent's environment: nobody would know whose a dump is. 0: nobody has that pipe.
pid_t Parking::other_with(const std::string& path, const InDomain& who) const {
  const auto found = std::ranges::find_if(dumpers_, [&](const auto& each) {
    return !path.empty() && each.first != who && each.second.path == path;
  });
  return found == dumpers_.end() ? 0 : found->first.first;
}

/// Whoever was started by us may take its time to begin its program. Once it has opened the GPU it has.
void Parking::look_at_the_doubtful() {
  for (auto& [who, dumper] : dumpers_) {
    if (dumper.is_in_doubt) look_at(who, dumper, dumper.has_gpu);
  }
  std::vector<std::string> begun;
  for (const auto& [path, given] : given_) {
    if (given.began_at && !given.is_emptied) begun.push_back(path);
  }
  for (const std::string& path : begun) {
    if (given_.contains(path)) on_dump_of_unknown(path);
  }
  forget_given_up();
}

/// An agent before has put it into the mode. Nobody holds its domain, and it is not to stand still in its
/// dump.
void Parking::empty_pipes_of(pid_t pid) {
  const auto environment = at_.kernel.read_memory_file(os::proc_folder(pid) + "/environ");
  std::vector<std::string> paths = {park::dump_path_in(environment.value_or("")), pipe_by_calls(pid)};
  if (const auto spare = SpareEnvironment::in(environment.value_or("")))
    paths.insert(paths.end(), spare->dumps.begin(), spare->dumps.end());
  for (const std::string& path : paths) {
    if (is_its_pipe(pid, path)) begin_to_empty(pid, path);
  }
}

uid_t Parking::user_of(pid_t pid) const {
  const auto status = at_.kernel.read_file(os::proc_folder(pid) + "/status");
  return os::user_in(status.value_or("")).value_or(uid_t{0});
}

std::shared_ptr<park::DumpBudget> Parking::budget_of(pid_t pid) { return budgets_.of(user_of(pid)); }

void Parking::begin_to_empty(pid_t pid, const std::string& path) {
  Emptied& its = emptied_[path];
  its.pid = pid;
  its.watch.cancel();
  auto pipe = park::DumpPipe::open(at_.kernel, path, budget_of(pid));
  if (!pipe)
    return spdlog::error("the core dump of process {} cannot be read: {}", pid, to_string(pipe.error()));
  its.pipe = std::move(*pipe);
  its.pipe->let_end();
  if (auto watch = at_.loop.watch_readable(its.pipe->fd(), [this, path] { empty(path); }))
    its.watch = std::move(*watch);
}

void Parking::empty(const std::string& path) {
  Emptied& its = emptied_.at(path);
  const bool is_over = its.pipe->read() == park::DumpPipe::State::Done;
  its.pipe->clear();
  if (is_over) begin_to_empty(its.pid, std::string(path));  // the pipe is emptied for the next one
}

void Parking::enter(const InDomain& who, Dumper& dumper, std::string path) {
  dumper.is_in_doubt = false;
  dumper.is_out = dumper.has_anothers_pipe = false;
  dumper.path = std::move(path);
  if (!dumper.pipe) open_pipe(who, dumper);
}

/// That which was opened when it was given out may have something in it already.
Result<park::DumpPipe> Parking::pipe_at(const std::string& path, pid_t pid) {
  const auto given = given_.find(path);
  if (given == given_.end() || given->second.is_emptied)
    return park::DumpPipe::open(at_.kernel, path, budget_of(pid));
  Result<park::DumpPipe> pipe = std::move(*given->second.pipe);
  given_.erase(given);
  return pipe;
}

void Parking::open_pipe(const InDomain& who, Dumper& dumper) {
  auto pipe = pipe_at(dumper.path, who.first);
  if (!pipe) {
    spdlog::error("the core dump of process {} cannot be read: {}", who.first, to_string(pipe.error()));
    return;
  }
  dumper.watch.cancel();
  dumper.pipe = std::move(*pipe);
  auto watch = at_.loop.watch_readable(dumper.pipe->fd(), [this, who] { on_dump(who); });
  if (watch) dumper.watch = std::move(*watch);
}

}  // namespace firebreak::agent
