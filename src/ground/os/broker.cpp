// SPDX-License-Identifier: Apache-2.0
#include "ground/os/broker.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "ground/os/descriptors.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/looks.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/os/socket_process.h"

namespace firebreak::os {
namespace {

constexpr std::size_t part_bytes = std::size_t{32} * 1024;
constexpr std::size_t most_message_bytes = 1024;
constexpr Milliseconds for_ever{-1};
/// The shortest part of a deadline that a look gets: an ordinary look takes less.
constexpr int shortest_part = 16;
constexpr Milliseconds end_limit{1'000};
/// Abandoned by nobody: it was in no look.
constexpr pid_t nobody = -1;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class Number>
Number number_in(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Returns the process of a path in /proc; 0: none.
pid_t process_in(std::string_view path) {
  constexpr std::string_view folder = "/proc/";
  return path.starts_with(folder) ? number_in<pid_t>(path.substr(folder.size())) : 0;
}

/// Returns the text behind the first word and its space; empty: there is nothing.
std::string_view rest_of(std::string_view text) {
  const std::size_t space = text.find(' ');
  return space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
}

Error error_in(std::string_view text) {
  const auto code =
      static_cast<ErrorCode>(std::clamp(number_in<int>(text), 0, static_cast<int>(ErrorCode::Internal)));
  return Error{code, std::string(rest_of(text)), {}};
}

std::string text_in(const Error& why) {
  return std::to_string(static_cast<int>(why.code)) + " " + why.message;
}

/// Splits many items into parts that fit into one question each.
template <class Item>
std::vector<std::span<const Item>> parts_of(std::span<const Item> all) {
  std::vector<std::span<const Item>> parts;
  for (std::size_t at = 0; at < all.size(); at += Broker::most_in_a_question)
    parts.push_back(all.subspan(at, std::min(Broker::most_in_a_question, all.size() - at)));
  return parts;
}

/// Writes links as broker.h says. The text of a link is its owner's choice, and holds no NUL.
std::string text_in(const DescriptorLinks& links) {
  std::string text = std::to_string(links.next) + " " + (links.has_missed_any ? "1" : "0") + '\0';
  for (const DescriptorLink& link : links.all) text += std::to_string(link.number) + " " + link.target + '\0';
  return text;
}

std::string text_in(std::span<const Result<bool>> same) {
  std::string text;
  for (const Result<bool>& each : same) {
    text += each ? (*each ? "1" : "0") : "!" + text_in(each.error()).substr(0, most_message_bytes);
    text += '\0';
  }
  return text;
}

std::vector<Result<bool>> same_in(std::string_view text) {
  std::vector<Result<bool>> same;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    if (item.starts_with('!')) {
      same.emplace_back(tl::unexpected<Error>(error_in(item.substr(1))));
    } else {
      same.emplace_back(item == "1");
    }
  }
  return same;
}

DescriptorLinks links_from(std::string_view text) {
  DescriptorLinks links;
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const std::string_view rest = rest_of(item);
    if (!std::exchange(is_first, false)) {
      links.all.push_back({number_in<int>(item), std::string(rest)});
    } else {
      links.next = number_in<int>(item);
      links.has_missed_any = rest == "1";
    }
  }
  return links;
}

/// None: it is gone.
std::optional<uid_t> user_of(pid_t pid) {
  return user_in(read_small_file("/proc/" + std::to_string(pid) + "/status").value_or(""));
}

/// None: it was in no look, and ends as its socket goes.
bool has_ended(const Fd& helper) {
  const int number = helper.get();
  if (!helper) return true;
  const auto ended = poll_readable(std::span(&number, 1), Milliseconds(0));
  return ended && !ended->empty();
}

void kill_helper(const Fd& helper) {
  if (helper) (void)RealKernel().send_signal(helper, SIGKILL);
}

/// Holds a process that stands still; the end of the helper that has stopped it lets it go.
class Stopped final : public Standstill {
 public:
  explicit Stopped(Socket helper) : helper_(std::move(helper)) {}

 private:
  Socket helper_;
};

/// Waits for the helper's answer; Timeout: it has none yet.
Status await_stop(Socket& helper, Milliseconds limit) {
  const auto said = helper.receive(limit);
  if (!said) return propagate(said);
  const std::string_view text = text_in(*said);
  return text.front() == '.' ? Status{} : Status(tl::unexpected<Error>(error_in(text.substr(1))));
}

}  // namespace

Broker::~Broker() {
  const std::lock_guard lock(mutex_);
  if (!helper_) return;
  kill_helper(helper_->process);
  const int number = helper_->process.get();
  if (number >= 0) (void)poll_readable(std::span(&number, 1), end_limit);
}

Status Broker::start() {
  const std::lock_guard lock(mutex_);
  if (auto begun = begin(); !begun) return begun;
  if (await_ready(options_.start_limit) == Ended::Answered) return {};
  forget_helper();
  return fail(ErrorCode::Timeout, "the process that looks at others does not start");
}

std::vector<pid_t> Broker::not_answered() {
  const std::lock_guard lock(mutex_);
  reap();
  std::vector<pid_t> all;
  for (const Abandoned& each : abandoned_) {
    if (each.whom.pid != nobody) all.push_back(each.whom.pid);
  }
  return all;
}

Result<std::string> Broker::read_file(const std::string& path) {
  auto answer = ask(process_in(path), "file\n" + path);
  if (!answer) return propagate(answer);
  return std::move(answer->bytes);
}

Result<std::string> Broker::read_memory(const std::string& path, std::uint64_t address,
                                        std::size_t size_bytes) {
  auto answer = ask(process_in(path),
                    "memory\n" + path + "\n" + std::to_string(address) + "\n" + std::to_string(size_bytes));
  if (!answer) return propagate(answer);
  return std::move(answer->bytes);
}

Result<DescriptorLinks> Broker::read_links(const std::string& directory, int from) {
  const auto answer = ask(process_in(directory), "links\n" + directory + "\n" + std::to_string(from));
  if (!answer) return propagate(answer);
  return links_from(answer->bytes);
}

Result<Fd> Broker::find(const std::string& path) {
  return std::move(those_in(ask(process_in(path), "find\n" + path), 1, "find a file of a process").front());
}

Result<Fd> Broker::duplicate(const Fd& pidfd, int number, const std::string& link) {
  const DescriptorLink wanted{number, link};
  return std::move(duplicate_all(pidfd, std::span(&wanted, 1)).front());
}

std::vector<Result<Fd>> Broker::duplicate_all(const Fd& pidfd, std::span<const DescriptorLink> wanted) {
  std::vector<Result<Fd>> all;
  const int attached = pidfd.get();
  const pid_t pid = process_behind(pidfd);
  for (const auto part : parts_of(wanted)) {
    std::string question = "duplicate";
    for (const DescriptorLink& each : part)
      question += "\n" + std::to_string(each.number) + " " + each.target;
    auto its = those_in(ask(pid, question, std::span(&attached, 1)), part.size(),
                        "duplicate a descriptor of a process");
    std::ranges::move(its, std::back_inserter(all));
  }
  return all;
}

/// Returns the descriptors in their order.
std::vector<Result<Fd>> Broker::those_in(Result<Answer> answer, std::size_t count, const char* what) {
  std::vector<Result<Fd>> all;
  const Error missing =
      answer ? Error{ErrorCode::ResourceExhausted, std::string(what) + ": it did not arrive", {}}
             : answer.error();
  for (std::size_t i = 0; i < count; ++i) all.emplace_back(tl::unexpected<Error>(missing));
  if (!answer) return all;
  for (auto& [place, found] : answer->descriptors) {
    if (place >= count) continue;
    if (found) found->close_by({});  // the asker has it now, and may want to wait for its close()
    all[place] = std::move(found);
  }
  return all;
}

Result<bool> Broker::is_same_file(pid_t pid, int number, pid_t other, int other_number) {
  const NumberPair numbers{number, other_number};
  return are_same_files(pid, other, std::span(&numbers, 1)).front();
}

std::vector<Result<bool>> Broker::are_same_files(pid_t pid, pid_t other,
                                                 std::span<const NumberPair> numbers) {
  std::vector<Result<bool>> all;
  for (const auto part : parts_of(numbers)) {
    std::string question = "same\n" + std::to_string(pid) + " " + std::to_string(other);
    for (const NumberPair& each : part)
      question += "\n" + std::to_string(each.number) + " " + std::to_string(each.other);
    const auto answer = ask(pid, question);
    auto its = answer ? same_in(answer->bytes) : std::vector<Result<bool>>();
    const Error missing = answer ? Error{ErrorCode::Protocol, "that was not answered", {}} : answer.error();
    its.resize(part.size(), tl::unexpected<Error>(missing));
    std::ranges::move(its, std::back_inserter(all));
  }
  return all;
}

Result<Broker::Answer> Broker::ask(pid_t pid, const std::string& question, std::span<const int> descriptors) {
  const auto put_off = [this] {
    ++put_offs_in_a_row_;
    return fail(ErrorCode::Timeout, "what is more urgent came first");
  };
  const int urgent = urgent_ && put_offs_in_a_row_ < most_put_offs_in_a_row ? urgent_() : -1;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!lock_unless_urgent(lock, urgent)) return put_off();
  // The answer to a question for descriptors is short, and what it brings may be the last of a process.
  urgent_now_ = descriptors.empty() ? urgent : -1;
  const Whom whom{pid, user_of(pid)};
  if (auto may = may_look_at(whom); !may) return propagate(may);
  Result<Answer> answer = fail(ErrorCode::Timeout, "nobody is there to look at other processes");
  // Somebody may have killed the helper: another one is asked the same, once.
  for (int tries = 0; tries < 2; ++tries) {
    if (auto begun = begin(); !begun) return fail(ErrorCode::Timeout, begun.error().message);
    const Monotonic since = SystemClock().now();
    Ended ended = waited_for(await_ready(deadline_now()), since);
    if (ended == Ended::Late) return answer;
    if (ended == Ended::Answered) ended = waited_for(take_owed(), since);
    if (ended == Ended::Answered) {
      helper_->owed = whom;
      ended = waited_for(ask_helper(question, descriptors, answer), since);
    }
    if (ended == Ended::PutOff) return put_off();
    if (ended == Ended::Gone) {
      forget_helper();
      continue;
    }
    const pid_t asked = helper_->owed->pid;
    if (ended == Ended::Late) {
      abandon(*helper_->owed);
      if (asked != pid) continue;  // an answer about another process
      return fail(ErrorCode::Timeout, "Linux does not answer questions about process " + std::to_string(pid));
    }
    helper_->owed.reset();
    put_offs_in_a_row_ = 0;
    return answer;
  }
  return answer;
}

/// False: what the calling thread does is to be put off.
bool Broker::lock_unless_urgent(std::unique_lock<std::timed_mutex>& lock, int urgent) {
  constexpr std::chrono::microseconds between_looks(200);
  while (urgent >= 0) {
    const auto waits = poll_readable(std::span(&urgent, 1), Milliseconds(0));
    if (waits && !waits->empty()) return false;
    if (lock.try_lock_for(between_looks)) return true;
  }
  lock.lock();
  return true;
}

Status Broker::may_look_at(const Whom& whom) {
  reap();
  if (std::ranges::any_of(abandoned_, [&](const Abandoned& each) { return each.whom.pid == whom.pid; }))
    return fail(ErrorCode::Timeout,
                "Linux does not answer questions about process " + std::to_string(whom.pid));
  const auto of_the_user =
      std::ranges::count_if(abandoned_, [&](const Abandoned& each) { return each.whom.user == whom.user; });
  if (whom.user && of_the_user >= static_cast<std::ptrdiff_t>(most_abandoned_for_one_user))
    return fail(ErrorCode::Timeout, "questions about " + std::to_string(of_the_user) + " processes of user " +
                                        std::to_string(*whom.user) +
                                        " had no answer: none of that user's is asked about, for now");
  if (deadline_now() < options_.deadline / shortest_part)
    return fail(ErrorCode::Timeout,
                "questions about too many processes had no answer: none is asked about, for now");
  if (abandoned_.size() < most_abandoned) return {};
  return fail(ErrorCode::Timeout, "questions about " + std::to_string(abandoned_.size()) +
                                      " processes had no answer: none is asked about, for now");
}

Milliseconds Broker::deadline_now() {
  const auto most = std::chrono::duration_cast<Milliseconds>(patience_.for_one(SystemClock().now()));
  return std::min(options_.deadline, most);
}

Broker::Ended Broker::waited_for(Ended ended, Monotonic since) {
  if (ended == Ended::Late) patience_.waited(SystemClock().now() - since);
  return ended;
}

/// Starts a helper where there is none.
Status Broker::begin() {
  if (helper_) return {};
  auto socket = ask_for_helper();
  if (!socket) return propagate(socket);
  helper_.emplace(Helper{std::move(*socket), {}});
  return {};
}

Result<Socket> Broker::ask_for_helper() const {
  auto ends = socket_pair();
  if (!ends) return propagate(ends);
  if (auto asked = options_.keeper->ask_for_helper(ends->second.fd(), options_.deadline); !asked)
    return propagate(asked);
  ends->first.close_by(closer_);
  return std::move(ends->first);
}

/// Answered: somebody may ask what the helper has said, or that nothing came in time.
Broker::Ended Broker::await_word(Monotonic until) {
  if (urgent_now_ < 0) return Ended::Answered;
  const std::array<int, 2> both{helper_->socket.fd().get(), urgent_now_};
  const auto left = std::chrono::ceil<Milliseconds>(until - SystemClock().now());
  const auto ready = poll_readable(both, std::max(left, Milliseconds(0)));
  return ready && !ready->empty() && ready->front() != 0 ? Ended::PutOff : Ended::Answered;
}

Broker::Ended Broker::await_ready(Milliseconds limit) {
  if (helper_->process) return Ended::Answered;
  if (await_word(SystemClock().now() + limit) == Ended::PutOff) return Ended::PutOff;
  auto process = await_helper(helper_->socket, limit);
  if (!process) return process.error().code == ErrorCode::Timeout ? Ended::Late : Ended::Gone;
  helper_->process = std::move(*process);
  return Ended::Answered;
}

Result<std::unique_ptr<Standstill>> Broker::stop_all_but_writers(pid_t pid, const Fd& pipe) {
  constexpr Milliseconds longest(300);
  const SystemClock clock;
  const Monotonic until = clock.now() + longest;
  const auto left = [&] {
    return std::max(std::chrono::ceil<Milliseconds>(until - clock.now()), Milliseconds(0));
  };
  const auto identity = pipe_identity(pipe);
  if (!identity) return propagate(identity);
  auto helper = ask_for_helper();
  if (!helper) return propagate(helper);
  const auto process = await_helper(*helper, left());
  if (!process) return propagate(process);
  const std::string question = "stop\n" + std::to_string(pid) + "\n" + std::to_string(identity->device) +
                               "\n" + std::to_string(identity->inode);
  Status stopped = helper->send(bytes_of(question), {}, left());
  if (stopped) stopped = await_stop(*helper, left());
  if (stopped) return std::make_unique<Stopped>(std::move(*helper));
  kill_helper(*process);
  if (stopped.error().code != ErrorCode::Timeout) return propagate(stopped);
  return fail(ErrorCode::Timeout, "process " + std::to_string(pid) + " is not to be stopped");
}

namespace {

bool is_late(const Error& why) { return why.code == ErrorCode::Timeout; }

}  // namespace

/// Answered: also where the answer is why not.
Broker::Ended Broker::ask_helper(const std::string& question, std::span<const int> descriptors,
                                 Result<Answer>& answer) {
  const Milliseconds deadline = deadline_now();
  const Monotonic until = SystemClock().now() + deadline;
  if (auto sent = helper_->socket.send(bytes_of(question), descriptors, deadline); !sent)
    return is_late(sent.error()) ? Ended::Late : Ended::Gone;
  return take_answer(until, answer);
}

Broker::Ended Broker::take_answer(Monotonic until, Result<Answer>& answer) {
  const SystemClock clock;
  Answer all;
  for (;;) {
    if (await_word(until) == Ended::PutOff) return Ended::PutOff;
    const auto left = std::chrono::ceil<Milliseconds>(until - clock.now());
    auto part = helper_->socket.receive(std::max(left, Milliseconds(0)));
    // The descriptor that came found no room in this process.
    if (!part && part.error().code == ErrorCode::Protocol) continue;
    if (!part) return is_late(part.error()) ? Ended::Late : Ended::Gone;
    const std::string_view text = text_in(*part);
    const std::string_view rest = text.substr(1);
    if (text.front() == 'd' && part->descriptors.size() == 1)
      all.descriptors.emplace_back(number_in<std::size_t>(rest), std::move(part->descriptors.front()));
    if (text.front() == '-')
      all.descriptors.emplace_back(number_in<std::size_t>(rest),
                                   tl::unexpected<Error>(error_in(rest_of(rest))));
    if (text.front() == '+') all.bytes += rest;
    if (text.front() == '!') {
      answer = tl::unexpected<Error>(error_in(rest));
      return Ended::Answered;
    }
    if (text.front() != '.') continue;
    answer = std::move(all);
    return Ended::Answered;
  }
}

/// Takes answers that nobody waited for.
Broker::Ended Broker::take_owed() {
  if (!helper_->owed) return Ended::Answered;
  Result<Answer> nobodys = Answer{};
  return take_answer(SystemClock().now() + deadline_now(), nobodys);
}

/// Its socket goes with it: what it may still say nobody takes for the answer to something else.
void Broker::abandon(const Whom& whom) {
  kill_helper(helper_->process);
  const pid_t pid = whom.pid;
  abandoned_.push_back({std::move(helper_->process), false, whom, SystemClock().now()});
  helper_.reset();
  if (options_.tell)
    options_.tell("Linux does not answer questions about process " + std::to_string(pid) +
                  " in time, so they are given up for now");
  (void)begin();
}

/// The helper is in no look, so it ends at once.
void Broker::forget_helper() {
  kill_helper(helper_->process);
  const bool ended = has_ended(helper_->process);
  abandoned_.push_back({std::move(helper_->process), ended, {nobody, {}}, {}});
  helper_.reset();
}

void Broker::reap() {
  const Monotonic now = SystemClock().now();
  std::erase_if(abandoned_, [&](Abandoned& each) {
    each.has_ended = each.has_ended || has_ended(each.helper);
    return each.has_ended && now - each.since >= options_.pause;
  });
}

// --- the helper

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

Status say(Socket& asker, const std::string& text) { return asker.send(bytes_of(text), {}, for_ever); }

Status say_why(Socket& asker, const Error& why) {
  return say(asker, ("!" + text_in(why)).substr(0, most_message_bytes));
}

Status say_all(Socket& asker, const Result<std::string>& bytes) {
  if (!bytes) return say_why(asker, bytes.error());
  for (std::size_t at = 0; at < bytes->size(); at += part_bytes) {
    if (auto said = say(asker, "+" + bytes->substr(at, part_bytes)); !said) return said;
  }
  return say(asker, ".");
}

Status say_links(Socket& asker, const Result<DescriptorLinks>& links) {
  return say_all(asker, links ? Result<std::string>(text_in(*links)) : propagate(links));
}

/// Given up before that is said: the last close() is to be the asker's.
Status give_one(Socket& asker, std::size_t place, const Fd& found) {
  const int number = found.get();
  return asker.send(bytes_of("d" + std::to_string(place)), std::span(&number, 1), for_ever);
}

Status give(Socket& asker, Result<Fd> found) {
  if (!found) return say_why(asker, found.error());
  if (auto given = give_one(asker, 0, *found); !given) return given;
  found->reset();
  return say(asker, ".");
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Returns the part of a path behind "/proc/N/" or "/proc/N/task/N/"; empty: it is no such path.
std::string_view within_task(std::string_view path) {
  constexpr std::string_view folder = "/proc/";
  constexpr std::string_view tasks = "task/";
  const auto take_number = [&path] {
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos || !is_number(path.substr(0, slash))) return false;
    path.remove_prefix(slash + 1);
    return true;
  };
  if (!path.starts_with(folder)) return {};
  path.remove_prefix(folder.size());
  if (!take_number()) return {};
  if (!path.starts_with(tasks)) return path;
  path.remove_prefix(tasks.size());
  return take_number() ? path : std::string_view{};
}

bool is_file_to_read(std::string_view path) {
  constexpr std::array<std::string_view, 6> names{"cgroup", "cmdline", "environ", "limits", "maps", "stat"};
  constexpr std::string_view of_descriptors = "fdinfo/";
  const std::string_view rest = within_task(path);
  const bool is_of_one = rest.starts_with(of_descriptors) && is_number(rest.substr(of_descriptors.size()));
  return is_of_one || std::ranges::find(names, rest) != names.end();
}

bool is_descriptor(std::string_view path) {
  constexpr std::string_view descriptors = "fd/";
  const std::string_view rest = within_task(path);
  return rest.starts_with(descriptors) && is_number(rest.substr(descriptors.size()));
}

/// Checks that the file is one that the process calls its own, so that nobody else's memory is read or
/// written.
Status check_memory_file(const Fd& found, std::span<const std::string> links) {
  if (kind_of(found.get()) != DescriptorKind::MemoryFile) return {};
  const auto link = RealKernel().read_link("/proc/self/fd/" + std::to_string(found.get()));
  if (link && std::ranges::find(links, *link) != links.end()) return {};
  return fail(ErrorCode::PermissionDenied, "that memory file is not to be had");
}

Result<Fd> find_listed(Looks& looks, const std::string& path, std::span<const std::string> links) {
  auto found = looks.find(path);
  if (!found) return found;
  const Status listed = check_memory_file(*found, links);
  return listed ? std::move(found) : propagate(listed);
}

Result<Fd> duplicate_listed(Looks& looks, const Fd& pidfd, int number, const std::string& link,
                            std::span<const std::string> links) {
  if (std::ranges::find(links, link) == links.end())
    return fail(ErrorCode::PermissionDenied, "no " + link + " is duplicated");
  auto found = looks.duplicate(pidfd, number, link);
  if (!found) return found;
  const Status listed = check_memory_file(*found, std::span(&link, 1));
  return listed ? std::move(found) : propagate(listed);
}

Status give_all(Looks& looks, Socket& asker, const Fd& pidfd, std::span<const std::string> wanted,
                std::span<const std::string> links) {
  for (std::size_t place = 0; place < std::min(wanted.size(), Broker::most_in_a_question); ++place) {
    const auto found = duplicate_listed(looks, pidfd, number_in<int>(wanted[place]),
                                        std::string(rest_of(wanted[place])), links);
    const Status said =
        found
            ? give_one(asker, place, *found)
            : say(asker,
                  ("-" + std::to_string(place) + " " + text_in(found.error())).substr(0, most_message_bytes));
    if (!said) return said;
  }
  return say(asker, ".");
}

Status say_same(Looks& looks, Socket& asker, std::span<const std::string> pairs) {
  if (pairs.empty()) return say_why(asker, {ErrorCode::InvalidArgument, "whose they are is not said", {}});
  const auto two_in = [](std::string_view text) {
    return std::pair(number_in<int>(text), number_in<int>(rest_of(text)));
  };
  const auto [pid, other] = two_in(pairs.front());
  std::vector<NumberPair> numbers;
  for (const std::string& each : pairs.subspan(1, std::min(pairs.size() - 1, Broker::most_in_a_question))) {
    const auto [number, other_number] = two_in(each);
    numbers.push_back({number, other_number});
  }
  return say_all(asker, text_in(looks.are_same_files(pid, other, numbers)));
}

/// Nothing but what broker.h names: whoever asks has fewer rights than we.
Status answer(Looks& looks, Socket& asker, const Message& question, std::span<const std::string> links) {
  std::vector<std::string> words = lines_of(text_in(question));
  const auto rest = std::span<const std::string>(words).subspan(1);
  if (words[0] == "duplicate" && question.descriptors.size() == 1)
    return give_all(looks, asker, question.descriptors.front(), rest, links);
  if (words[0] == "same") return say_same(looks, asker, rest);
  words.resize(std::max(words.size(), std::size_t{4}));
  const std::string& path = words[1];
  if (words[0] == "file" && is_file_to_read(path)) return say_all(asker, looks.read_file(path));
  if (words[0] == "memory" && within_task(path) == "mem")
    return say_all(
        asker, looks.read_memory(path, number_in<std::uint64_t>(words[2]), number_in<std::size_t>(words[3])));
  if (words[0] == "links" && within_task(path) == "fd")
    return say_links(asker, looks.read_links(path, number_in<int>(words[2])));
  if (words[0] == "find" && is_descriptor(path)) return give(asker, find_listed(looks, path, links));
  if (words[0] == "stop") {
    const auto stopped = stop_all_but_writers_for_good(
        number_in<pid_t>(words[1]), {number_in<dev_t>(words[2]), number_in<ino_t>(words[3])});
    return stopped ? say(asker, ".") : say_why(asker, stopped.error());
  }
  return say_why(asker, {ErrorCode::InvalidArgument, "that is no look", {}});
}

}  // namespace

void serve_looks(Socket& asker, std::span<const std::string> links) {
  (void)run_in_short_turns();  // the agent's loop waits for us
  const auto looks = direct_looks();
  for (;;) {
    const auto question = asker.receive(for_ever);
    if (!question || !answer(*looks, asker, *question, links)) return;
  }
}

}  // namespace firebreak::os
