// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/run_limit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ground/os/processor_wait.h"

namespace firebreak::agent {
namespace {

/// To look keeps waiting what has just happened, and most limits are cancelled before that.
constexpr int first_look_after_parts = 4;
constexpr Nanoseconds shortest_pause = Milliseconds(5);

}  // namespace

/// Time is what was waited for by timers: how late we come to look says nothing about others.
struct RunLimit::UnderWay {
  Knows at;
  Nanoseconds limit;
  For of;
  std::function<void()> over;
  Nanoseconds passed{0};
  Nanoseconds pause{0};  ///< until the next look
  std::uint64_t seen = 0;
  std::map<pid_t, os::ProcessorWait> waits = {};
  os::Watch next = {};

  void begin() {
    passed = Nanoseconds(0);
    waits.clear();
    if (of.seen) seen = of.seen();
  }
  void look_after(Nanoseconds wanted) {
    pause = std::max(wanted, shortest_pause);
    next = at.loop.after_or_now(pause, [this] { look(); });
  }
  Nanoseconds longest_wait() {
    const Monotonic now = Monotonic{} + passed;
    Nanoseconds longest{0};
    for (const pid_t pid : of.whom()) {
      const auto known = waits.find(pid);
      if (known == waits.end())
        waits.emplace(pid, os::ProcessorWait(at.kernel, pid, now));
      else
        longest = std::max(longest, known->second.until(at.kernel, now));
    }
    return longest;
  }
  void look() {
    passed += pause;
    if (of.seen && of.seen() != seen) begin();
    const bool is_first = waits.empty();
    const Nanoseconds left = limit - passed + longest_wait();
    if (left > Nanoseconds(0)) return look_after(left);
    if (is_first && !waits.empty()) return look_after(limit / first_look_after_parts);
    const auto told = std::move(over);  // which may end us
    told();
  }
};

RunLimit::RunLimit() = default;
RunLimit::RunLimit(RunLimit&&) noexcept = default;
RunLimit& RunLimit::operator=(RunLimit&&) noexcept = default;
RunLimit::~RunLimit() = default;

void RunLimit::start(Knows knows, Milliseconds limit, For of, std::function<void()> over) {
  under_way_ = std::make_unique<UnderWay>(UnderWay{knows, limit, std::move(of), std::move(over)});
  under_way_->begin();
  under_way_->look_after(Nanoseconds(limit) / first_look_after_parts);
}

void RunLimit::cancel() { under_way_.reset(); }

}  // namespace firebreak::agent
