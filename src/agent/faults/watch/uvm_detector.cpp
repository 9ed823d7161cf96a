// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/uvm_detector.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "agent/faults/watch/uvm_queue.h"

namespace firebreak::watch {
namespace {

/// Pause between two tries where there was no descriptor for something.
constexpr Nanoseconds look_for_room = std::chrono::milliseconds(200);

}  // namespace

Status UvmDetector::start() { return UvmQueue::offered(at_.kernel); }

Status UvmDetector::follow(const Target& target, Parentage) {
  followed_.erase(target.pid);
  if (works_) listen_to(followed_[target.pid] = Followed{target, nullptr, false, {}});
  return {};
}

void UvmDetector::listen_to(Followed& followed) {
  const pid_t pid = followed.target.pid;
  UvmListenerOptions options;
  options.page_faults = at_.options.uvm_page_faults;
  options.on_page_fault = at_.on_page_fault;
  options.on_gap = at_.on_gap;
  options.on_attached = [this, pid] { note_attached(pid); };
  followed.listener =
      std::make_unique<UvmListener>(at_.loop, at_.kernel, at_.clock, followed.target, options, at_.on_fault,
                                    [this, pid](const Error& error) { note_end(pid, error); });
  const Status started = followed.listener->start();
  if (started) return;
  // A failure of one process need not be the next one's; a driver of another kind is said once.
  works_ = started.error().code != ErrorCode::Protocol;
  followed.listener.reset();
  if (started.error().code == ErrorCode::ResourceExhausted) return listen_later(pid, started.error());
  spdlog::warn("{}", to_string(started.error()));
}

/// We have no descriptor left for them.
void UvmDetector::listen_later(pid_t pid, const Error& why) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return;
  if (!std::exchange(found->second.lacks_descriptors, true))
    spdlog::warn("UVM events of process {} are not heard; tried again: {}", pid, to_string(why));
  found->second.again = at_.loop.after_or_now(look_for_room, [this, pid] {
    const auto still = followed_.find(pid);
    if (still != followed_.end()) listen_to(still->second);
  });
}

void UvmDetector::note_attached(pid_t pid) {
  if (const auto found = followed_.find(pid); found != followed_.end()) {
    found->second.lacks_descriptors = false;
  }
  if (at_.on_uvm_heard) at_.on_uvm_heard(pid);
}

void UvmDetector::note_end(pid_t pid, const Error& error) {
  if (error.code == ErrorCode::ResourceExhausted) return listen_later(pid, error);
  const std::string words = "its UVM events are not heard any more: " + to_string(error);
  if (error.code == ErrorCode::NotFound) return spdlog::debug("process {}: {}", pid, words);
  const auto found = followed_.find(pid);
  Gap gap;
  gap.source = fault::FaultSource::UvmEvent;
  gap.pid = pid;
  if (found != followed_.end()) gap.domain = found->second.target.domain;
  gap.text = words;
  at_.on_gap(gap);
}

/// The driver keeps a process's address space for whoever listens to it.
void UvmDetector::stop(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return;
  if (found->second.listener) found->second.listener->stop();
  followed_.erase(pid);
}

void UvmDetector::read_now(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found != followed_.end() && found->second.listener) found->second.listener->read_now();
}

void UvmDetector::look_again(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found != followed_.end() && found->second.listener) found->second.listener->look_again();
}

UvmHearing UvmDetector::hears_uvm_of(pid_t pid) const {
  const auto found = followed_.find(pid);
  if (found == followed_.end()) return UvmHearing::No;
  if (found->second.listener && found->second.listener->attached()) return UvmHearing::Yes;
  return found->second.lacks_descriptors ? UvmHearing::NoDescriptors : UvmHearing::No;
}

bool UvmDetector::listen_to_page_faults(pid_t pid) {
  const auto found = followed_.find(pid);
  if (found == followed_.end() || !found->second.listener) return false;
  if (const Status done = found->second.listener->listen_to_page_faults(); !done) {
    spdlog::warn("page faults of process {} are not heard: {}", pid, to_string(done.error()));
  }
  return hears_uvm_of(pid) == UvmHearing::Yes;
}

}  // namespace firebreak::watch
