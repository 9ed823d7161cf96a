// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/uvm_listener.h"

#include <algorithm>
#include <utility>

#include "ground/os/descriptors.h"

namespace firebreak::watch {
namespace {

/// A process has two or three. A target that opens thousands must not keep us busy: until it has a VA space
/// it is looked through again and again.
constexpr std::size_t most_candidates = 16;
/// Largest number of candidates of a process that is attached to, which is asked for more now and then. Each
/// driver in it has as many, and each fault of its domain leaves one more driver there (docs/how/spare.md).
constexpr std::size_t most_candidates_of_attached = 128;
/// Largest number of VA spaces that are listened to at once: of a working driver, its spare and an anchor,
/// and of those that have just been left.
constexpr std::size_t most_attachments = 8;

/// Events that a fault may hide behind. Most page faults are serviced, and a fatal one is told once more.
constexpr std::uint64_t dangers = abi::uvm_event_mask(abi::UvmEventType::FatalFault) |
                                  abi::uvm_event_mask(abi::UvmEventType::FaultBufferOverflow);

std::uint64_t wanted_events(const UvmListenerOptions& options) {
  std::uint64_t mask = dangers;
  if (options.page_faults) mask |= abi::uvm_event_mask(abi::UvmEventType::GpuFault);
  return mask;
}

tl::unexpected<Error> explain_getfd(const Error& error, pid_t pid) {
  const std::string message = "no UVM events of process " + std::to_string(pid) + ": " + error.message;
  if (error.code == ErrorCode::PermissionDenied) {
    return fail(error.code, message,
                "run as root or with CAP_SYS_PTRACE, or as its user with ptrace_scope 0");
  }
  return fail(error.code, message, error.hint);
}

}  // namespace

UvmListener::UvmListener(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Target target,
                         UvmListenerOptions options, FaultCallback on_fault, EndCallback on_end)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      target_(std::move(target)),
      options_(std::move(options)),
      on_fault_(std::move(on_fault)),
      on_end_(std::move(on_end)),
      next_retry_(options.first_retry) {}

Status UvmListener::start() {
  Result<os::Fd> process = kernel_.pidfd_open(target_.pid);
  if (!process) return explain_getfd(process.error(), target_.pid);
  process_ = std::move(*process);
  Result<os::Watch> gone = loop_.watch_readable(process_.get(), [this] { target_is_gone(); });
  if (!gone) return propagate(gone);
  gone_ = std::move(*gone);
  Status started = look_on();
  if (!started) let_go();
  return started;
}

/// Succeeds without an attachment when the target simply has no VA space yet: it is looked at again.
Status UvmListener::look_on() {
  Status done = try_to_attach();
  if (done && (!attached() || scan_.is_under_way() || was_late_)) done = retry_later();
  return done;
}

Status UvmListener::try_to_attach() {
  const auto are_all = look_for_candidates();
  if (!are_all) return propagate(are_all);
  if (*are_all) forget_gone(candidates_);
  for (const int number : candidates_) {
    if (is_known(number)) continue;
    if (Status done = attach(number); !done) return done;
  }
  while (attachments_.size() > most_attachments) attachments_.pop_front();
  return {};
}

bool UvmListener::is_known(int remote_number) const {
  const bool is_attached = std::ranges::any_of(attachments_, [&](const Attachment& each) {
    return each.number == remote_number && each.look == look_;
  });
  return is_attached || no_va_spaces_.contains(remote_number);
}

/// The process that has closed them may open another one under that number.
void UvmListener::forget_gone(const std::vector<int>& numbers) {
  const auto is_gone = [&](int number) { return std::ranges::find(numbers, number) == numbers.end(); };
  std::erase_if(no_va_spaces_, is_gone);
  for (auto next = attachments_.begin(); next != attachments_.end();) {
    const auto each = next++;
    if (!is_gone(each->number)) continue;
    drain(*each);
    attachments_.erase(each);
  }
}

/// The number may have been another opening's until now. What waits in that one's queue is told first.
void UvmListener::forget_before(const Attachment& newest) {
  for (auto next = attachments_.begin(); next != attachments_.end();) {
    const auto each = next++;
    if (each->number != newest.number || &*each == &newest) continue;
    drain(*each);
    attachments_.erase(each);
  }
}

void UvmListener::look_again() {
  if (!attached()) return;  // a process that is not attached is looked at again and again
  ++look_;
  no_va_spaces_.clear();
  scan_.begin_again();
  if (const Status done = look_on(); !done) return end(done.error());
  if (distrust_) end(*distrust_);
}

/// The next part of them. Whether those are all now.
Result<bool> UvmListener::look_for_candidates() {
  if (!scan_.is_under_way()) {
    candidates_.clear();
    count_.note(kernel_, target_.pid);
  }
  const std::string wanted = kernel_.uvm_link_target();
  const std::size_t most = attached() ? most_candidates_of_attached : most_candidates;
  const auto visited = scan_.visit_next(kernel_, target_.pid, [&](int number, const std::string& target) {
    if (target == wanted) candidates_.push_back(number);
    return candidates_.size() < most;
  });
  // A target that just died has no such directory any more; its pidfd says so in a moment. One that does not
  // let itself be looked at is asked again.
  const ErrorCode why = visited ? ErrorCode::NotFound : visited.error().code;
  if (why != ErrorCode::NotFound && why != ErrorCode::Timeout)
    return explain_getfd(visited.error(), target_.pid);
  was_late_ = why == ErrorCode::Timeout;
  return visited && *visited && candidates_.size() < most;
}

/// Looking through very many, again and again, takes a good part of a core.
bool UvmListener::is_large_and_as_it_was() {
  return !scan_.is_under_way() && !was_late_ && scan_.looks() > 1 &&
         count_.is_as_noted(kernel_, target_.pid, options_.most_glances);
}

/// Succeeds without an attachment when this descriptor is no VA space or is gone again.
Status UvmListener::attach(int remote_number) {
  const Result<os::Fd> uvm_fd = kernel_.pidfd_getfd(process_, remote_number, kernel_.uvm_link_target());
  if (!uvm_fd && uvm_fd.error().code == ErrorCode::ResourceExhausted) return propagate(uvm_fd);
  if (!uvm_fd && uvm_fd.error().code == ErrorCode::PermissionDenied) {
    return explain_getfd(uvm_fd.error(), target_.pid);
  }
  if (!uvm_fd) was_late_ |= uvm_fd.error().code == ErrorCode::Timeout;
  if (!uvm_fd) return {};
  Result<UvmQueue> queue = UvmQueue::open(kernel_, *uvm_fd, wanted_events(options_));
  if (!queue && queue.error().code == ErrorCode::Unsupported) no_va_spaces_.insert(remote_number);
  if (!queue && queue.error().code == ErrorCode::Unsupported) return {};
  if (!queue) return propagate(queue);
  Attachment& attachment =
      attachments_.emplace_back(Attachment{std::move(*queue), remote_number, look_, 0, 0, {}});
  Result<os::Watch> readable = loop_.watch_readable(attachment.queue.fd().get(), [this, &attachment] {
    drain(attachment);
    if (distrust_) end(*distrust_);
  });
  if (!readable) {
    attachments_.pop_back();
    return propagate(readable);
  }
  attachment.readable = std::move(*readable);
  forget_before(attachment);
  if (attachments_.size() == 1 && options_.on_attached) options_.on_attached();
  return {};
}

Status UvmListener::listen_to_page_faults() {
  if (std::exchange(options_.page_faults, true)) return {};
  for (Attachment& attachment : attachments_) {
    if (Status done = attachment.queue.listen_to(kernel_, wanted_events(options_)); !done) return done;
  }
  return {};
}

Status UvmListener::retry_later() {
  const Nanoseconds pause = scan_.is_under_way() ? options_.between_looks : next_retry_;
  Result<os::Watch> timer = loop_.after(pause, [this] {
    const os::EventLoop::Background background(loop_);
    retry();
  });
  if (!timer) return propagate(timer);
  retry_ = std::move(*timer);
  if (!scan_.is_under_way()) next_retry_ = std::min(next_retry_ * 2, options_.longest_retry);
  return {};
}

/// A descriptor that was no VA space may have become one.
void UvmListener::retry() {
  Status done;
  if (is_large_and_as_it_was()) {
    done = retry_later();
  } else {
    if (!scan_.is_under_way()) no_va_spaces_.clear();
    done = look_on();
  }
  if (!done) end(done.error());
}

void UvmListener::read_now() {
  for (Attachment& attachment : attachments_) drain(attachment);
}

void UvmListener::stop() {
  read_now();
  let_go();
}

void UvmListener::target_is_gone() {
  // The driver may have told of the fault that ended the target just before: that comes first.
  read_now();
  if (distrust_) return end(*distrust_);
  end(Error{ErrorCode::NotFound, "process " + std::to_string(target_.pid) + " is gone", {}});
}

std::optional<UvmLayout> UvmListener::layout() const {
  if (!attached()) return std::nullopt;
  return attachments_.front().queue.layout();
}

void UvmListener::drain(Attachment& attachment) {
  if (distrust_) return;
  const os::EventLoop::Background foreground(loop_, false);  // an event that is heard may be a fault
  const UvmLayout layout = attachment.queue.layout();
  const auto drained = attachment.queue.drain(
      kernel_, [this, layout](std::span<const std::byte> entry) { handle(layout, entry); });
  if (!drained) distrust_ = drained.error();
  note_dropped(attachment);
}

void UvmListener::note_dropped(Attachment& attachment) {
  const std::uint64_t dropped = attachment.queue.dropped();
  const std::uint64_t dropped_dangers = attachment.queue.dropped(dangers);
  const std::uint64_t news = dropped - std::exchange(attachment.dropped, dropped);
  const std::uint64_t danger = dropped_dangers - std::exchange(attachment.dropped_dangers, dropped_dangers);
  counters_.dropped += news;
  if (news == 0 || !options_.on_gap) return;
  Gap gap;
  gap.source = fault::FaultSource::UvmEvent;
  gap.pid = target_.pid;
  gap.domain = target_.domain;
  gap.danger = danger > 0;
  gap.text = "the driver dropped " + std::to_string(news) + " UVM events, " + std::to_string(danger) +
             " of fatal faults or a full fault buffer among them";
  options_.on_gap(gap);
}

void UvmListener::handle(UvmLayout layout, std::span<const std::byte> entry) {
  if (distrust_) return;
  const std::optional<UvmRecord> record = decode(layout, entry);
  if (!record) {
    ++counters_.other;
    return;
  }
  if (const std::string why = implausible(*record, clock_.now()); !why.empty()) {
    distrust_ =
        Error{ErrorCode::Protocol,
              "no UVM events of process " + std::to_string(target_.pid) + " any more: an event of layout " +
                  to_string(layout) + " makes no sense (" + why + ")",
              "this driver's events look otherwise; its faults are still seen in the kernel log, later"};
    return;
  }
  if (record->type == abi::UvmEventType::FatalFault) return report(*record);
  if (record->type == abi::UvmEventType::GpuFault) return note_page_fault(*record);
  note_overflow();
}

fault::Fault UvmListener::fault_of(const UvmRecord& record) const {
  fault::Fault fault;
  fault.when = clock_.now();
  set_subject(fault, target_);
  fault.address = record.address;
  fault.source = fault::FaultSource::UvmEvent;
  return fault;
}

void UvmListener::report(const UvmRecord& record) {
  if (record.of_the_cpu) {
    ++counters_.cpu_faults;
    return;
  }
  ++counters_.fatal_faults;
  fault::Fault fault = fault_of(record);
  const bool from_the_hub = hub_fault_address_ == record.address;
  fault.fault_class = from_the_hub ? fault::FaultClass::MmuNonReplayable : fault::FaultClass::MmuReplayable;
  fault.kind = "fatal fault: " + describe(record);
  on_fault_(fault);
}

void UvmListener::note_page_fault(const UvmRecord& record) {
  ++counters_.page_faults;
  const bool from_the_hub = record.client_type == abi::UvmClientType::Hub;
  if (from_the_hub) hub_fault_address_ = record.address;
  if (!options_.on_page_fault) return;
  PageFault told{fault_of(record), word_of(record.access_type)};
  told.fault.fault_class =
      from_the_hub ? fault::FaultClass::MmuNonReplayable : fault::FaultClass::MmuReplayable;
  told.fault.kind = "page fault: " + describe(record);
  told.fault.conclusive = false;
  options_.on_page_fault(told);
}

void UvmListener::note_overflow() {
  ++counters_.overflows;
  fault::Fault fault = fault_of({});
  fault.address.reset();
  fault.kind = "the GPU's fault buffer overflowed";
  fault.conclusive = false;
  on_fault_(fault);
}

void UvmListener::let_go() {
  gone_.cancel();
  retry_.cancel();
  attachments_.clear();
  process_.reset();
}

void UvmListener::end(const Error& error) {
  let_go();
  on_end_(error);
}

}  // namespace firebreak::watch
