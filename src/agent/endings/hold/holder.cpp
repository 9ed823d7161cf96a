// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/hold/holder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "ground/os/descriptors.h"
#include "ground/os/processes.h"
#include "ground/os/self.h"

namespace firebreak::hold {

std::string describe(const Release& release) {
  const auto held_ms = std::chrono::duration_cast<Milliseconds>(release.held).count();
  switch (release.work) {
    case WorkEnd::Known:
      return fmt::format("its last kernels are known to have ended: let go {} ms after its end", held_ms);
    case WorkEnd::Presumed:
      return fmt::format("its last kernels are taken to have ended: held for {} ms", held_ms);
    case WorkEnd::Unknown:
      return fmt::format("let go {} ms after its end: a kernel that still runs takes its domain along",
                         held_ms);
    case WorkEnd::Forced:
      return fmt::format("given up {} ms after its end with work that runs on: its domain fails", held_ms);
  }
  return {};
}

bool is_safe(WorkEnd work) { return work == WorkEnd::Known || work == WorkEnd::Presumed; }

namespace {

/// Pause before a closing begins where there was no thread for it.
constexpr Nanoseconds before_next_thread = std::chrono::milliseconds(100);

/// Declared in this order, the later the worse.
WorkEnd worse(WorkEnd one, WorkEnd other) { return std::max(one, other); }

}  // namespace

Holder::Holder(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, HolderOptions options,
               HolderCallbacks callbacks)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      options_(options),
      callbacks_(std::move(callbacks)),
      self_(std::make_shared<Holder*>(this)) {}

Holder::~Holder() {
  *self_ = nullptr;
  for (auto& [id, dead] : dead_) {
    if (dead.closing.joinable()) dead.closing.join();
  }
}

Status Holder::follow(pid_t pid) {
  auto process = kernel_.pidfd_open(pid);
  const bool lacks = !process && process.error().code == ErrorCode::ResourceExhausted;
  if (!process && !lacks) return propagate(process);
  follow(pid, lacks ? nullptr : std::make_shared<const os::Fd>(std::move(*process)));
  return {};
}

void Holder::follow(pid_t pid, std::shared_ptr<const os::Fd> process) {
  Client client;
  client.process = std::move(process);
  client.pause = options_.first_look;
  clients_.insert_or_assign(pid, std::move(client));
  look(pid);
}

void Holder::look(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  Client& client = found->second;
  const Traces traces = traces_of(pid);
  if (client.look_from == 0) {
    client.count.note(kernel_, pid);
    client.looked_at = 0;
    client.seen.clear();
    client.image_before = client.image;
  }
  const std::size_t before = client.duplicates.size();
  const Status looked = look_at(pid, client);
  // One that has just opened something is about to open the rest: an address space alone is not enough.
  if (client.duplicates.size() > before) client.pause = options_.first_look;
  const ErrorCode why = looked ? ErrorCode::Internal : looked.error().code;
  const bool lacks = why == ErrorCode::ResourceExhausted || why == ErrorCode::Timeout;
  if (lacks && !client.lacks) {
    spdlog::warn("process {} is not held, or not all of it; tried again: {}", pid, to_string(looked.error()));
  }
  if (lacks || client.look_from == 0) client.lacks = lacks;  // something is lacking in any part of it
  look_later(pid, client);
  if (traces_of(pid) != traces) tell_later(callbacks_.on_traces, pid);
}

void Holder::tell_later(const std::function<void(pid_t)>& callback, pid_t pid) {
  if (!callback) return;
  loop_.post([self = self_, callback, pid] {
    if (*self != nullptr) callback(pid);
  });
}

/// Looking at many processes of many descriptors each takes a good part of a core.
void Holder::look_again(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  Client& client = found->second;
  if (!is_as_it_was(pid, client)) return look(pid);
  note_image(pid, client);
  look_later(pid, client);
}

bool Holder::is_as_it_was(pid_t pid, Client& client) const {
  const os::EventLoop::Background background(loop_);
  if (client.look_from != 0 || client.lacks) return false;  // the rest of the look before, or once more
  return client.count.is_as_noted(kernel_, pid, options_.most_glances) &&
         client.duplicates.has_still(kernel_, pid, client.count.glances());
}

/// One that has died in the meantime shows none, and its children are known by the one that it had.
void Holder::note_image(pid_t pid, Client& client) {
  if (auto user = os::user_in(kernel_.read_file(os::proc_folder(pid) + "/status").value_or("")))
    client.user = user;
  std::string image = os::image_of(kernel_, pid);
  if (image.empty()) return;
  const bool is_another = !client.image.empty() && client.image != image;
  client.image = std::move(image);
  if (is_another) tell_later(callbacks_.on_other_program, pid);
}

Status Holder::look_at(pid_t pid, Client& client) {
  if (!client.process) {
    auto process = kernel_.pidfd_open(pid);
    if (!process) return propagate(process);
    client.process = std::make_shared<const os::Fd>(std::move(*process));
  }
  Result<bool> are_all = true;
  if (options_.takes_duplicates) {
    const os::EventLoop::Background background(loop_, client.looks++ > 0);
    are_all = add_gpu_descriptors_of(kernel_, pid, client.look_from, client.seen, client.looked_at);
  }
  const std::string image = client.image_before;
  note_image(pid, client);  // the image is noted after the descriptors: exec changes it before it closes them
  if (!are_all) return propagate(are_all);
  if (client.looked_at >= os::most_descriptors_of_a_process && !std::exchange(client.is_large, true)) {
    spdlog::warn("process {} has more than {} descriptors: what it opens is held late", pid,
                 os::most_descriptors_of_a_process);
  }
  // A descriptor that was not looked at yet may be there still.
  if (!*are_all) return client.duplicates.take(kernel_, *client.process, client.seen, closed_by(pid));
  const Numbers numbers = std::exchange(client.seen, {});
  // Both can be so: what a process has closed may have been the last of it, and work may be under way.
  Duplicates gone = client.duplicates.give_back(kernel_, pid, numbers);
  if (!gone.empty()) {
    // One that has become another program may have children that keep what it had, with the image of then.
    const Traces traces{image, {}, {}};
    auto looker = image == client.image
                      ? nullptr
                      : std::make_shared<OtherHolders>(kernel_, clock_, late(pid, traces, client.user));
    hold_for_dead(pid, traces, std::move(gone), std::move(looker));
  }
  return client.duplicates.take(kernel_, *client.process, numbers, closed_by(pid));
}

/// Returns how many are held that the process has not itself any more, or as many as may be: a process that
/// opens and closes all the time does not have more held than others.
std::size_t Holder::closed_by(pid_t pid) const {
  std::size_t closings = 0;
  std::size_t count = 0;
  for (const auto& [id, dead] : dead_) {
    if (dead.pid != pid) continue;
    ++closings;
    count += dead.count;
  }
  return closings >= options_.most_closings ? Duplicates::most_of_a_process : count;
}

bool Holder::lacks(pid_t pid) const {
  const auto found = clients_.find(pid);
  return found != clients_.end() && found->second.lacks;
}

bool Holder::is_large(pid_t pid) const {
  const auto found = clients_.find(pid);
  return found != clients_.end() && found->second.is_large;
}

void Holder::look_later(pid_t pid, Client& client) {
  if (client.lacks) client.pause = options_.look_for_room;
  const Nanoseconds pause = client.look_from != 0 ? options_.between_parts : client.pause;
  auto timer = loop_.after(pause, [this, pid] { look_again(pid); });
  if (!timer) {
    return spdlog::error("descriptors of process {} are not followed any more: {}", pid,
                         to_string(timer.error()));
  }
  client.next_look = std::move(*timer);
  client.pause = std::min(client.pause * 2, options_.longest_look);
}

bool Holder::keep(pid_t pid, Traces known) {
  Duplicates duplicates;
  std::optional<uid_t> user;
  if (const auto found = clients_.find(pid); found != clients_.end()) {
    duplicates = std::move(found->second.duplicates);
    user = found->second.user;
    if (known.image.empty()) known.image = found->second.image;
    clients_.erase(found);
  }
  keep_what_is_left(pid, std::move(known), std::move(duplicates), user);
  return is_held(pid);
}

void Holder::keep_of_program_before(pid_t pid, Traces known) {
  const auto found = clients_.find(pid);
  keep_what_is_left(pid, std::move(known), {}, found == clients_.end() ? std::nullopt : found->second.user);
}

void Holder::keep_what_is_left(pid_t pid, Traces known, Duplicates duplicates, std::optional<uid_t> user) {
  auto looker = std::make_shared<OtherHolders>(kernel_, clock_, late(pid, known, user));
  if (duplicates.empty()) duplicates = looker->take_found();
  // A tenant without descriptors that we know of may have had some all the same.
  if (!duplicates.empty() || !looker->look({}).none()) {
    hold_for_dead(pid, std::move(known), std::move(duplicates), std::move(looker));
  }
}

bool Holder::is_held(pid_t pid) const {
  return std::ranges::any_of(dead_, [pid](const auto& entry) { return entry.second.pid == pid; });
}

Traces Holder::traces_of(pid_t pid) const {
  Traces traces;
  if (const auto found = clients_.find(pid); found != clients_.end())
    traces = {found->second.image, found->second.duplicates.marks(), {}};
  for (const auto& [id, dead] : dead_) {
    if (dead.pid != pid) continue;
    traces.image = dead.traces.image;
    traces.marks.insert(traces.marks.end(), dead.traces.marks.begin(), dead.traces.marks.end());
    traces.others.insert(traces.others.end(), dead.others.seen.begin(), dead.others.seen.end());
  }
  return traces;
}

Late Holder::late(pid_t pid, Traces traces, std::optional<uid_t> user) const {
  Late late{pid, {}, std::move(traces), user};
  for (const auto& [other, client] : clients_) late.others.insert(other);
  late.others.erase(pid);
  return late;
}

void Holder::hold_for_dead(pid_t pid, Traces traces, Duplicates duplicates,
                           std::shared_ptr<OtherHolders> looker) {
  const std::uint64_t id = next_id_++;
  Dead& dead = dead_[id];
  dead.pid = pid;
  dead.traces = std::move(traces);
  for (const os::OpeningMark mark : duplicates.marks()) {
    auto& marks = dead.traces.marks;
    if (std::ranges::find(marks, mark) == marks.end()) marks.push_back(mark);
  }
  dead.count = duplicates.size();
  dead.duplicates = std::move(duplicates);
  dead.died = clock_.now();
  dead.looker = std::move(looker);
  if (callbacks_.watch_work) dead.read = callbacks_.watch_work(pid);
  dead.deadline = loop_.after_or_now(options_.hold, [this, id] { time_is_up(id); });
  // The reading is not begun from here: who learns of the death does not expect the release yet.
  if (dead.read) dead.next_read = loop_.after_or_now({}, [this, id] { look_at_work(id); });
}

WorkState Holder::state_of(const Dead& dead) { return dead.read ? dead.read() : WorkState::Unknown; }

/// Looks again as long as work is known to run.
void Holder::look_at_work(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || is_closing(found->second)) return;
  Dead& dead = found->second;
  switch (dead.read()) {
    case WorkState::Ended:
      dead.work = WorkEnd::Known;
      dead.endless = false;
      return close(id);
    case WorkState::Running:
      dead.next_read = loop_.after_or_now(options_.work_look, [this, id] { look_at_work(id); });
      return;
    case WorkState::Unknown:
      return;
  }
}

void Holder::time_is_up(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || is_closing(found->second)) return;
  state_of(found->second) == WorkState::Running ? hold_on(id) : close(id);
}

/// Its work is known to run on.
void Holder::hold_on(std::uint64_t id) {
  Dead& dead = dead_.at(id);
  dead.endless = true;
  const Nanoseconds left = options_.longest - (clock_.now() - dead.died);
  dead.deadline = loop_.after_or_now(std::max(left, Nanoseconds(0)), [this, id] { force(id); });
  if (callbacks_.on_endless) callbacks_.on_endless(dead.pid);
}

void Holder::close(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || is_closing(found->second) || found->second.endless) return;
  const bool keep_if_busy = found->second.work != WorkEnd::Unknown;
  // Nobody waits for its work, as closing the manager's would: what is to fail fails now.
  const bool space_first = !keep_if_busy && state_of(found->second) == WorkState::Running;
  close_now(id, {keep_if_busy, space_first});
}

void Holder::close_now(std::uint64_t id, ClosingPlan plan) {
  Dead& dead = dead_.at(id);
  dead.deadline.cancel();
  dead.next_read.cancel();
  dead.plan = plan;
  start_closing(id);
}

/// Keeps ours while somebody else has them: the last close() is to be our own, since only that says when the
/// driver has let go.
void Holder::start_closing(std::uint64_t id) {
  Dead& dead = dead_.at(id);
  const auto kept = std::make_shared<Duplicates>(std::exchange(dead.duplicates, {}));
  auto closing = os::start_thread([this, id, plan = dead.plan, looker = dead.looker, kept] {
    Duplicates duplicates = std::move(*kept);
    if (looker) looker->take_time();
    Findings others = looker ? looker->look(duplicates) : Findings();
    if (others.none() && !duplicates.empty()) {
      if (looker) looker->prepare_to_close(duplicates);
      close_as_planned(plan, duplicates);
      if (looker && duplicates.empty()) others = looker->look(duplicates);
    }
    tell(id, std::move(duplicates), std::move(others));
  });
  if (closing) {
    dead.closing = std::move(*closing);
    return;
  }
  dead.duplicates = std::move(*kept);
  dead.next_look = loop_.after_or_now(before_next_thread, [this, id] {
    const auto its = dead_.find(id);
    if (its != dead_.end() && !is_closing(its->second)) start_closing(id);
  });
}

void Holder::close_as_planned(ClosingPlan plan, Duplicates& duplicates) {
  if (plan.space_first) close_space(duplicates);
  const Monotonic begun = clock_.now();
  for (os::Fd& fd : duplicates.release(Device::ResourceManager)) kernel_.close(std::move(fd));
  const bool busy = clock_.now() - begun >= options_.idle_wait;
  if (!busy || !plan.keep_if_busy) close_space(duplicates);
}

/// Closes on a thread of its own: with a kernel under way it takes as long as its fault.
void Holder::close_space(Duplicates& duplicates) {
  for (os::Fd& fd : duplicates.release(Device::AddressSpace)) kernel_.close(std::move(fd));
}

/// Called from a closing thread; what it did not close comes back.
void Holder::tell(std::uint64_t id, Duplicates left, Findings others) {
  loop_.post(
      [self = self_, id, left = std::make_shared<Duplicates>(std::move(left)), others = std::move(others)] {
        if (*self != nullptr) (*self)->closed(id, std::move(*left), others);
      });
}

void Holder::closed(std::uint64_t id, Duplicates left, const Findings& others) {
  Dead& dead = dead_.at(id);
  dead.closing.join();
  dead.duplicates = std::move(left);
  dead.waits = !others.none();
  if (dead.waits) return await_others(id, others);
  dead.others = {};
  dead.duplicates.empty() ? release(id) : hold_on(id);
}

void Holder::await_others(std::uint64_t id, const Findings& others) {
  Dead& dead = dead_.at(id);
  const bool is_new = dead.others != others;
  dead.pause = is_new ? options_.first_other_look : std::min(dead.pause * 2, options_.longest_other_look);
  dead.others = others;
  dead.next_look = loop_.after_or_now(dead.pause, [this, id] { start_closing(id); });
  if (callbacks_.on_others) callbacks_.on_others(dead.pid, others);
}

bool Holder::is_closing(const Dead& dead) { return dead.closing.joinable() || dead.waits; }

void Holder::force(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || is_closing(found->second)) return;
  found->second.work = WorkEnd::Forced;
  found->second.endless = false;
  close_now(id, {.keep_if_busy = false, .space_first = true});
}

void Holder::let_go(pid_t pid, Nanoseconds patience) {
  for (auto& [id, dead] : dead_) {
    if (dead.pid != pid) continue;
    const WorkState work = state_of(dead);
    if (work == WorkState::Running && patience > Nanoseconds{}) {
      dead.deadline = loop_.after_or_now(patience, [this, id = id] { let_go_now(id); });
    } else if (work == WorkState::Ended) {
      look_at_work(id);
    } else {
      let_go_now(id);
    }
  }
}

void Holder::let_go_now(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end()) return;
  Dead& dead = found->second;
  if (dead.waits && !dead.duplicates.empty() && dead.work == WorkEnd::Presumed) {
    // Nobody waits for its work either, once nobody else has it.
    dead.work = WorkEnd::Unknown;
    dead.plan.keep_if_busy = false;
  }
  if (is_closing(dead)) return;
  if (dead.endless) return force(id);
  dead.work = WorkEnd::Unknown;
  close(id);
}

void Holder::release(std::uint64_t id) {
  const auto found = dead_.find(id);
  const Dead& gone = found->second;
  const Release done{gone.pid, worse(gone.worst, gone.work), clock_.now() - gone.died};
  dead_.erase(found);
  // One word for all of it, when nothing is left: that of which least can be vouched for.
  bool is_last = true;
  for (auto& [other, dead] : dead_) {
    if (dead.pid != done.pid) continue;
    is_last = false;
    dead.worst = worse(dead.worst, done.work);
  }
  if (callbacks_.on_released && is_last) callbacks_.on_released(done);
}

std::vector<Held> Holder::held() const {
  std::vector<Held> all;
  for (const auto& [pid, client] : clients_) {
    if (client.duplicates.has(Device::AddressSpace) && client.duplicates.has(Device::ResourceManager))
      all.push_back({pid, false, false, WorkState::Unknown, {}, {}});
  }
  for (const auto& [id, dead] : dead_) {
    all.push_back({dead.pid, true, dead.endless, state_of(dead), clock_.now() - dead.died, dead.others});
  }
  return all;
}

}  // namespace firebreak::hold
