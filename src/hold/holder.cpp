// SPDX-License-Identifier: Apache-2.0
#include "hold/holder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

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
  if (!process) return propagate(process);
  clients_[pid] = Client{std::move(*process), {}, options_.first_look, {}};
  look(pid);
  return {};
}

void Holder::look(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  Client& client = found->second;
  if (const auto numbers = gpu_descriptors_of(kernel_, pid)) {
    // Both: what a process has closed may have been the last of it, and work may be under way.
    Duplicates gone = client.duplicates.give_back(kernel_, pid, *numbers);
    if (!gone.empty()) mourn(pid, std::move(gone));
    client.duplicates.take(kernel_, client.process, *numbers);
  }
  look_later(pid, client);
}

void Holder::look_later(pid_t pid, Client& client) {
  auto timer = loop_.after(client.pause, [this, pid] { look(pid); });
  if (!timer) {
    return spdlog::error("descriptors of process {} are not followed any more: {}", pid,
                         to_string(timer.error()));
  }
  client.next_look = std::move(*timer);
  client.pause = std::min(client.pause * 2, options_.longest_look);
}

bool Holder::keep(pid_t pid) {
  const auto found = clients_.find(pid);
  if (found != clients_.end()) {
    Duplicates duplicates = std::move(found->second.duplicates);
    clients_.erase(found);
    if (!duplicates.empty()) mourn(pid, std::move(duplicates));
  }
  return is_mourned(pid);
}

bool Holder::is_mourned(pid_t pid) const {
  return std::ranges::any_of(dead_, [pid](const auto& entry) { return entry.second.pid == pid; });
}

void Holder::mourn(pid_t pid, Duplicates duplicates) {
  const std::uint64_t id = next_id_++;
  Dead& dead = dead_[id];
  dead.pid = pid;
  dead.duplicates = std::move(duplicates);
  dead.died = clock_.now();
  if (callbacks_.watch_work) dead.read = callbacks_.watch_work(pid);
  dead.deadline = loop_.after_or_now(options_.hold, [this, id] { time_is_up(id); });
  // Not from here: who learns of the death does not expect the release yet.
  if (dead.read) dead.next_read = loop_.after_or_now({}, [this, id] { look_at_work(id); });
}

WorkState Holder::state_of(const Dead& dead) { return dead.read ? dead.read() : WorkState::Unknown; }

/// As long as it is known to run.
void Holder::look_at_work(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || found->second.closing.joinable()) return;
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
  if (found == dead_.end() || found->second.closing.joinable()) return;
  state_of(found->second) == WorkState::Running ? hold_on(id) : close(id);
}

/// Its work is known to run on.
void Holder::hold_on(std::uint64_t id) {
  Dead& dead = dead_.at(id);
  dead.endless = true;
  dead.deadline =
      loop_.after_or_now(options_.longest - (clock_.now() - dead.died), [this, id] { force(id); });
  if (callbacks_.on_endless) callbacks_.on_endless(dead.pid);
}

void Holder::close(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || found->second.closing.joinable() || found->second.endless) return;
  Dead& dead = found->second;
  dead.deadline.cancel();
  dead.next_read.cancel();
  const bool keep_if_busy = dead.work != WorkEnd::Unknown;
  // Nobody waits for its work, as closing the manager's would: what is to fail fails now.
  const bool space_first = !keep_if_busy && state_of(dead) == WorkState::Running;
  dead.closing = std::thread(
      [this, id, keep_if_busy, space_first](Duplicates duplicates) {
        if (space_first) close_space(duplicates);
        const Monotonic begun = clock_.now();
        for (os::Fd& fd : duplicates.release(Device::ResourceManager)) kernel_.close(std::move(fd));
        const bool busy = clock_.now() - begun >= options_.idle_wait;
        if (!busy || !keep_if_busy) close_space(duplicates);
        tell(id, std::move(duplicates));
      },
      std::exchange(dead.duplicates, {}));
}

/// On a thread of its own: with a kernel under way it takes as long as its fault.
void Holder::close_space(Duplicates& duplicates) {
  for (os::Fd& fd : duplicates.release(Device::AddressSpace)) kernel_.close(std::move(fd));
}

/// From a closing thread; what it did not close comes back.
void Holder::tell(std::uint64_t id, Duplicates left) {
  loop_.post([self = self_, id, left = std::make_shared<Duplicates>(std::move(left))] {
    if (*self != nullptr) (*self)->closed(id, std::move(*left));
  });
}

void Holder::closed(std::uint64_t id, Duplicates left) {
  Dead& dead = dead_.at(id);
  dead.closing.join();
  if (left.empty()) return release(id);
  dead.duplicates = std::move(left);
  hold_on(id);
}

void Holder::force(std::uint64_t id) {
  const auto found = dead_.find(id);
  if (found == dead_.end() || found->second.closing.joinable()) return;
  Dead& dead = found->second;
  dead.work = WorkEnd::Forced;
  dead.deadline.cancel();
  dead.next_read.cancel();
  dead.closing = std::thread(
      [this, id](Duplicates duplicates) {
        close_space(duplicates);
        tell(id, {});
      },
      std::exchange(dead.duplicates, {}));
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
  if (found == dead_.end() || found->second.closing.joinable()) return;
  if (found->second.endless) return force(id);
  found->second.work = WorkEnd::Unknown;
  close(id);
}

void Holder::release(std::uint64_t id) {
  const auto found = dead_.find(id);
  const Dead& dead = found->second;
  const Release done{dead.pid, dead.work, clock_.now() - dead.died};
  dead_.erase(found);
  // One word for all of it: the last one, or the one that nobody can vouch for.
  const bool is_last = !is_mourned(done.pid);
  if (callbacks_.on_released && (is_last || !is_safe(done.work))) callbacks_.on_released(done);
}

std::vector<Held> Holder::held() const {
  std::vector<Held> all;
  for (const auto& [pid, client] : clients_) {
    if (!client.duplicates.empty()) all.push_back({pid, false, false, WorkState::Unknown, {}});
  }
  for (const auto& [id, dead] : dead_) {
    all.push_back({dead.pid, true, dead.endless, state_of(dead), clock_.now() - dead.died});
  }
  return all;
}

}  // namespace firebreak::hold
