// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/strays/stray_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ground/os/descriptors.h"

namespace firebreak::strays {
namespace {

GuardReport report_of(const guard::GuardView& guard) {
  return {guard.state(), guard.note(), guard.guard_range_bytes()};
}

/// Returns what /proc shows for a memory file of that name.
std::string page_link() { return os::memory_file_link(abi::guard_page_name); }

}  // namespace

void StrayWatch::follow(pid_t pid) {
  auto process = kernel_.pidfd_open(pid);
  const bool lacks = !process && process.error().code == ErrorCode::ResourceExhausted;
  if (!process && !lacks)
    return spdlog::info("the guard of process {} is not seen: {}", pid, process.error().message);
  Followed& followed = followed_[pid] = Followed{};
  if (process) followed.process = std::move(*process);
  followed.pause = options_.first_pause;
  look(pid);
}

Summary StrayWatch::forget(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return {};
  while (found->second.book.is_waiting()) tell_strays(found->second);
  const Summary last = summary_of(pid);
  followed_.erase(found);
  return last;
}

void StrayWatch::expect_guard(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return;
  found->second.pause = options_.first_pause;
  found->second.count.forget();
  found->second.scan.begin_again();
  look(pid);
}

void StrayWatch::look(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return;
  Followed& followed = found->second;
  const Status looked = followed.guard ? Status() : look_for_guard(pid, followed);
  const bool lacks = !looked && looked.error().code == ErrorCode::ResourceExhausted;
  if (lacks && !followed.lacks)
    spdlog::warn("the guard of process {} is not seen; tried again: {}", pid, to_string(looked.error()));
  followed.lacks = lacks;
  if (followed.guard && !followed.is_heard && callbacks_.on_listen && callbacks_.on_listen(pid)) {
    followed.is_heard = true;
    followed.guard->say_heard();
  }
  look_later(pid, followed);
  if (followed.guard) tell_guard(pid, followed);
}

void StrayWatch::look_later(pid_t pid, Followed& followed) {
  const bool is_part = !followed.guard && followed.scan.is_under_way();
  auto timer = loop_.after(is_part ? options_.between_looks : followed.pause, [this, pid] {
    const os::EventLoop::Background background(loop_);
    look(pid);
  });
  if (!timer) {
    return spdlog::error("the guard of process {} is not looked at any more: {}", pid,
                         to_string(timer.error()));
  }
  followed.next_look = std::move(*timer);
  if (!is_part) followed.pause = std::min(followed.pause * 2, options_.longest_pause);
}

/// A look through all descriptors of many processes, again and again, takes a good part of a core.
bool StrayWatch::is_as_it_was(pid_t pid, Followed& followed) const {
  return !followed.scan.is_under_way() && followed.pause >= options_.longest_pause &&
         followed.count.is_as_noted(kernel_, pid, options_.most_glances);
}

Status StrayWatch::look_for_guard(pid_t pid, Followed& followed) {
  if (is_as_it_was(pid, followed)) return {};
  if (!followed.scan.is_under_way()) {
    followed.closer_looks = 0;
    followed.count.note(kernel_, pid);
  }
  const Status looked = find_guard(pid, followed);
  if (!looked) followed.count.forget();
  return looked;
}

Status StrayWatch::find_guard(pid_t pid, Followed& followed) {
  if (!followed.process) {
    auto process = kernel_.pidfd_open(pid);
    if (!process) return propagate(process);
    followed.process = std::move(*process);
  }
  Status lack;
  const auto visited = followed.scan.visit_next(kernel_, pid, [&](int number, const std::string& target) {
    if (target != page_link()) return true;
    if (++followed.closer_looks > os::most_closer_looks) return false;
    const auto descriptor = kernel_.pidfd_getfd(followed.process, number, target);
    if (!descriptor) lack = propagate(descriptor);
    auto guard = descriptor ? guard::GuardView::of(descriptor->get())
                            : Result<guard::GuardView>(propagate(descriptor));
    if (guard) followed.guard = std::make_shared<guard::GuardView>(std::move(*guard));
    // One of another version, or one that is not written yet.
    if (!guard) followed.count.forget();
    return !followed.guard;
  });
  if (!visited) return propagate(visited);
  return followed.guard ? Status() : lack;
}

bool StrayWatch::lacks(pid_t pid) const {
  const auto found = followed_.find(pid);
  return found != followed_.end() && found->second.lacks;
}

bool StrayWatch::is_heard(pid_t pid) const {
  const auto found = followed_.find(pid);
  return found != followed_.end() && found->second.is_heard;
}

void StrayWatch::tell_guard(pid_t pid, Followed& followed) {
  GuardReport now = report_of(*followed.guard);
  const bool changed = !followed.told || followed.told->state != now.state || followed.told->note != now.note;
  followed.told = std::move(now);
  if (changed && callbacks_.on_guard) callbacks_.on_guard(pid, GuardReport(*followed.told));
}

void StrayWatch::note_page_fault(const watch::PageFault& page_fault) {
  const auto found = followed_.find(page_fault.fault.pid.value_or(0));
  if (found == followed_.end() || !found->second.guard) return;
  if (found->second.book.note(page_fault, *found->second.guard)) {
    confirm_later(found->first, found->second);
  }
}

void StrayWatch::note_signal(const fault::Fault& signal) {
  if (signal.source != fault::FaultSource::UvmEvent || !signal.address) return;
  const auto found = followed_.find(signal.pid.value_or(0));
  if (found != followed_.end()) found->second.book.note_fatal(*signal.address);
}

void StrayWatch::confirm_later(pid_t pid, Followed& followed) {
  auto timer = loop_.after(options_.confirmation, [this, pid] { confirm(pid); });
  if (!timer) return spdlog::error("strays of process {} are not told: {}", pid, to_string(timer.error()));
  followed.confirmation = std::move(*timer);
}

void StrayWatch::confirm(pid_t pid) {
  auto found = followed_.find(pid);
  if (found == followed_.end()) return;
  tell_strays(found->second);
  found = followed_.find(pid);
  if (found != followed_.end() && found->second.book.is_waiting()) confirm_later(pid, found->second);
}

void StrayWatch::tell_strays(Followed& followed) {
  for (const Stray& stray : followed.book.confirm(*followed.guard)) {
    if (callbacks_.on_stray) callbacks_.on_stray(stray);
  }
}

std::shared_ptr<const guard::GuardView> StrayWatch::guard_of(pid_t pid) const {
  const auto found = followed_.find(pid);
  return found == followed_.end() ? nullptr : found->second.guard;
}

Summary StrayWatch::summary_of(pid_t pid) const {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return {};
  const Followed& followed = found->second;
  return {followed.guard ? std::optional(report_of(*followed.guard)) : std::nullopt, followed.book.count(),
          followed.book.blocks()};
}

}  // namespace firebreak::strays
