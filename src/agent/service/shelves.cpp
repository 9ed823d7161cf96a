// SPDX-License-Identifier: Apache-2.0
#include "agent/service/shelves.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>

#include "ground/os/closer.h"
#include "ground/os/socket.h"

namespace firebreak::agent {
namespace {

constexpr std::string_view prefix = "shelf/";
/// The longest are two names of 63 bytes each, with what stands before and between.
constexpr std::size_t names_in_a_question = 400;

std::optional<std::uint32_t> number_of(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint32_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_whole = read.ec == std::errc() && read.ptr == name.data() + name.size();
  return is_whole ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string shelf_name(std::uint32_t number) { return fmt::format("{}{}", prefix, number); }

bool is_shelf(const std::string& name) { return number_of(name).has_value(); }

void end_shelf(os::Socket socket) {
  socket.close_by(std::make_shared<os::Closer>());
  os::end_sending(socket);
  // Words that it still had to say nobody wants.
  while (socket.receive(Shelves::patience)) {
  }
}

Shelves::~Shelves() {
  for (auto& [number, shelf] : shelves_) {
    if (!shelf.is_kept) end_shelf(std::move(shelf.socket));
  }
}

void Shelves::take_up(std::map<std::string, os::Fd>& descriptors) {
  for (auto at = descriptors.begin(); at != descriptors.end();) {
    const auto number = number_of(at->first);
    if (number) shelves_.emplace(*number, One{os::Socket(std::move(at->second)), 0, true});
    at = number ? descriptors.erase(at) : std::next(at);
  }
}

Status Shelves::put(const std::string& name, int descriptor) {
  reap();
  // The last first: those before it were full.
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, shelf] : shelves_) numbers.push_back(number);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    if (put_on(*number, name, descriptor)) return {};
  }
  if (auto added = add(); !added) return added;
  if (put_on(shelves_.rbegin()->first, name, descriptor)) return {};
  return fail(ErrorCode::ResourceExhausted, "a new shelf takes no descriptor");
}

bool Shelves::put_on(std::uint32_t number, const std::string& name, int descriptor) {
  const auto answer = ask(shelves_.at(number), 'k', std::span(&name, 1), descriptor);
  if (answer) shelves_.at(number).is_empty = false;
  if (!answer && answer.error().code == ErrorCode::Unavailable) forget(number);
  return answer && answer->text == "1";
}

Status Shelves::add() {
  auto ends = os::socket_pair();
  if (!ends) return propagate(ends, "a shelf for descriptors");
  os::SpawnRequest request;
  request.command = command_;
  request.inherited = {{ends->second.fd().get(), socket_descriptor}};
  request.new_session = true;
  request.die_with_parent = false;
  const auto pid = kernel_.spawn(request);
  if (!pid) return propagate(pid, "a shelf for descriptors");
  const std::uint32_t number = shelves_.empty() ? 0 : shelves_.rbegin()->first + 1;
  // A shelf that nobody keeps ends with this agent, with what is on it.
  const bool is_kept = manager_.keep(shelf_name(number), ends->first.fd().get()).has_value();
  shelves_.emplace(number, One{std::move(ends->first), *pid, is_kept});
  const Status moved = manager_.give_own_unit(fmt::format("firebreak-shelf-{}", *pid),
                                              "Firebreak: what tenants' memory is held by", *pid);
  if (!moved && moved.error().code != ErrorCode::Unsupported)
    spdlog::warn("shelf {} stays in this service's cgroup: {}", number, to_string(moved.error()));
  spdlog::info("process {} is shelf {}: it holds descriptors of tenants' memory", *pid, number);
  return {};
}

Result<std::vector<os::Fd>> Shelves::get(std::span<const std::string> names) {
  std::vector<os::Fd> found(names.size());
  for (std::size_t at = 0; at < names.size(); at += os::most_descriptors_in_a_message) {
    const auto part = names.subspan(at, std::min(os::most_descriptors_in_a_message, names.size() - at));
    std::vector<os::Fd> its(part.size());
    if (const auto looked = look('g', part, &its); !looked) return propagate(looked);
    std::ranges::move(its, found.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return found;
}

Result<std::vector<bool>> Shelves::have(std::span<const std::string> names) {
  std::vector<bool> all;
  for (std::size_t at = 0; at < names.size(); at += names_in_a_question) {
    const auto part = names.subspan(at, std::min(names_in_a_question, names.size() - at));
    const auto its = look('h', part, nullptr);
    if (!its) return propagate(its);
    all.insert(all.end(), its->begin(), its->end());
  }
  return all;
}

Result<std::vector<bool>> Shelves::look(char what, std::span<const std::string> names,
                                        std::vector<os::Fd>* found) {
  std::vector<bool> seen(names.size(), false);
  std::optional<Error> not_said;
  for (auto& [number, shelf] : shelves_) {
    std::vector<std::string> wanted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (seen[i]) continue;
      wanted.push_back(names[i]);
      places.push_back(i);
    }
    if (wanted.empty()) break;
    auto answer = ask(shelf, what, wanted);
    // A shelf that is gone has taken along what it had.
    if (!answer && answer.error().code != ErrorCode::Unavailable) not_said = answer.error();
    if (!answer || answer->text.size() != wanted.size()) continue;
    const auto count = static_cast<std::size_t>(std::ranges::count(answer->text, '1'));
    if (found != nullptr && answer->descriptors.size() != count) continue;
    for (std::size_t i = 0, next = 0; i < wanted.size(); ++i) {
      if (answer->text[i] != '1') continue;
      seen[places[i]] = true;
      if (found != nullptr) (*found)[places[i]] = std::move(answer->descriptors[next++]);
    }
  }
  const bool are_all_seen = std::ranges::count(seen, false) == 0;
  if (not_said && !are_all_seen) return fail(ErrorCode::Timeout, not_said->message);
  return seen;
}

void Shelves::drop(const std::string& name) {
  for (auto& [number, shelf] : shelves_) shelf.undropped.push_back(name);
  drop_rest();
}

bool Shelves::drop_rest() {
  const SystemClock clock;
  bool are_all_dropped = true;
  std::vector<std::uint32_t> over;
  for (auto& [number, shelf] : shelves_) {
    if (shelf.undropped.empty() && !shelf.is_empty) continue;
    const bool may_ask = !shelf.silent_until || clock.now() >= *shelf.silent_until;
    const Status told =
        may_ask ? drop_what_is_left(shelf) : fail(ErrorCode::Timeout, "a shelf does not answer");
    const bool is_gone = !told && told.error().code == ErrorCode::Unavailable;
    if (is_gone || shelf.is_empty) over.push_back(number);
    if (!told && !is_gone) are_all_dropped = false;
  }
  for (const std::uint32_t number : over) forget(number);
  reap();
  return are_all_dropped;
}

void Shelves::end_all() {
  while (!shelves_.empty()) forget(shelves_.begin()->first);
  reap();
}

std::vector<std::string> Shelves::silent() const {
  std::vector<std::string> names;
  for (const auto& [number, shelf] : shelves_) {
    if (shelf.silent_until) names.push_back(shelf_name(number));
  }
  return names;
}

void Shelves::forget(std::uint32_t number) {
  const auto found = shelves_.find(number);
  if (found->second.pid != 0) leaving_.push_back(found->second.pid);
  manager_.drop(shelf_name(number));
  end_shelf(std::move(found->second.socket));
  shelves_.erase(found);
}

void Shelves::reap() {
  std::erase_if(leaving_, [this](pid_t pid) {
    const auto ended = kernel_.try_wait(pid);
    return !ended || ended->has_value();
  });
}

Result<Shelves::Answer> Shelves::ask(One& shelf, char what, std::span<const std::string> names,
                                     int descriptor) {
  const SystemClock clock;
  if (shelf.silent_until && clock.now() < *shelf.silent_until)
    return fail(ErrorCode::Timeout, "a shelf does not answer");
  if (const Status told = drop_what_is_left(shelf); !told) return propagate(told);
  return ask_and_wait(shelf, what, names, descriptor);
}

Status Shelves::drop_what_is_left(One& shelf) {
  while (!shelf.undropped.empty()) {
    const std::size_t count = std::min(names_in_a_question, shelf.undropped.size());
    auto answer = ask_and_wait(shelf, 'd', std::span(shelf.undropped).first(count), -1);
    if (!answer) return propagate(answer);
    shelf.is_empty = answer->text == "0";
    shelf.undropped.erase(shelf.undropped.begin(),
                          shelf.undropped.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return {};
}

Result<Shelves::Answer> Shelves::ask_and_wait(One& shelf, char what, std::span<const std::string> names,
                                              int descriptor) {
  // An agent before may have left an answer unread: numbers of another one begin elsewhere.
  if (questions_ == 0) questions_ = static_cast<std::uint64_t>(to_ns(SystemClock().now()));
  const std::string number = fmt::format("{} ", ++questions_);
  std::string text = fmt::format("{}{} ", number, what);
  for (const std::string& name : names) text += name + "\n";
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  const auto closer = std::make_shared<os::Closer>();  // the descriptors are one tenant's
  const SystemClock clock;
  const Monotonic until = clock.now() + patience;
  const auto failed = [&](const Error& why) {
    if (why.code == ErrorCode::Timeout) shelf.silent_until = clock.now() + pause;
    return tl::unexpected(why);
  };
  if (auto sent = shelf.socket.send(std::as_bytes(std::span(text)), descriptors, patience); !sent)
    return failed(sent.error());
  for (;;) {
    const auto left = std::chrono::duration_cast<Milliseconds>(until - clock.now());
    auto received = shelf.socket.receive(std::max(left, Milliseconds(0)));
    if (!received) return failed(received.error());
    shelf.silent_until.reset();
    for (os::Fd& each : received->descriptors) each.close_by(closer);
    const std::string_view answer(reinterpret_cast<const char*>(received->bytes.data()),
                                  received->bytes.size());
    if (answer.starts_with(number))
      return Answer{std::string(answer.substr(number.size())), std::move(received->descriptors)};
  }
}

}  // namespace firebreak::agent
