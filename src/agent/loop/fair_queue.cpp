// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/fair_queue.h"

#include <algorithm>

namespace firebreak::agent {

void FairQueue::put(uid_t user, pid_t pid) {
  const bool has_time = spent_ < limits_.of_a_turn && of(user).allowance.wait(clock_.now()) == Nanoseconds(0);
  if (of(user).waiting.empty() && has_time) {
    act(user, pid);
  } else {
    of(user).waiting.push_back(pid);
  }
  come_again();
}

/// What is done may put more, so nobody's place in the table is held meanwhile.
void FairQueue::act(uid_t user, pid_t pid) {
  const Monotonic begin = clock_.now();
  act_(pid);
  const Monotonic end = clock_.now();
  of(user).allowance.spend(end - begin, end);
  spent_ += end - begin;
}

void FairQueue::settle(pid_t pid) {
  for (auto& [id, user] : users_) {
    const auto found = std::ranges::find(user.waiting, pid);
    if (found == user.waiting.end()) continue;
    user.waiting.erase(found);
    return act(id, pid);
  }
}

bool FairQueue::waits(pid_t pid) const {
  return std::ranges::any_of(users_, [pid](const auto& each) {
    return std::ranges::find(each.second.waiting, pid) != each.second.waiting.end();
  });
}

std::optional<uid_t> FairQueue::next() const {
  const Monotonic now = clock_.now();
  const auto may = [now](const auto& each) {
    return !each.second.waiting.empty() && each.second.allowance.wait(now) == Nanoseconds(0);
  };
  const auto behind = users_.upper_bound(last_);
  if (const auto found = std::find_if(behind, users_.end(), may); found != users_.end()) return found->first;
  const auto first = std::find_if(users_.begin(), behind, may);
  return first == behind ? std::nullopt : std::optional(first->first);
}

void FairQueue::take_turn() {
  spent_ = Nanoseconds(0);
  if (const auto user = next()) {
    last_ = *user;
    auto& waiting = of(*user).waiting;
    const pid_t pid = waiting.front();
    waiting.pop_front();
    act(*user, pid);
  }
  come_again();
}

/// As soon as somebody's share allows it. Who waits for nothing is forgotten once it has its whole share
/// again.
void FairQueue::come_again() {
  const Monotonic now = clock_.now();
  std::erase_if(users_, [now](const auto& each) {
    return each.second.waiting.empty() && each.second.allowance.is_whole(now);
  });
  const bool is_idle =
      std::ranges::all_of(users_, [](const auto& each) { return each.second.waiting.empty(); });
  if (is_idle && spent_ == Nanoseconds(0)) return turn_.cancel();
  Nanoseconds wait = limits_.of_user.longest_wait;
  for (const auto& [id, user] : users_) {
    if (!user.waiting.empty()) wait = std::min(wait, user.allowance.wait(now));
  }
  if (spent_ > Nanoseconds(0)) wait = Nanoseconds(0);  // the turn of now is over then
  turn_ = loop_.after_or_now(wait, [this] { take_turn(); });
}

}  // namespace firebreak::agent
