// SPDX-License-Identifier: Apache-2.0
#include "watch/uvm_detector.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace firebreak::watch {
namespace {

/// A process has two or three; a target that opens thousands must not keep us busy.
constexpr std::size_t most_candidates = 16;

std::string word(abi::UvmAccessType access) {
  switch (access) {
    case abi::UvmAccessType::Read:
      return "load";
    case abi::UvmAccessType::Write:
      return "store";
    case abi::UvmAccessType::Atomic:
      return "atomic";
    case abi::UvmAccessType::Prefetch:
      return "prefetch";
    case abi::UvmAccessType::Invalid:
      break;
  }
  return "access type " + std::to_string(static_cast<unsigned>(access));
}

std::string word(abi::UvmFaultType type) {
  switch (type) {
    case abi::UvmFaultType::InvalidPde:
      return "invalid PDE";
    case abi::UvmFaultType::InvalidPte:
      return "invalid PTE";
    case abi::UvmFaultType::Write:
      return "write to read-only";
    case abi::UvmFaultType::Atomic:
      return "atomic not allowed";
    case abi::UvmFaultType::LimitViolation:
      return "address limit";
    case abi::UvmFaultType::PrivilegeViolation:
      return "privilege";
    case abi::UvmFaultType::RegionViolation:
      return "region";
    case abi::UvmFaultType::Poison:
      return "poisoned memory";
    default:
      return "fault type " + std::to_string(static_cast<unsigned>(type));
  }
}

std::uint64_t wanted_events(const UvmDetectorOptions& options) {
  std::uint64_t mask = abi::uvm_event_mask(abi::UvmEventType::FatalFault);
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

UvmDetector::UvmDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Target target,
                         UvmDetectorOptions options, FaultCallback on_fault, EndCallback on_end)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      target_(std::move(target)),
      options_(options),
      on_fault_(std::move(on_fault)),
      on_end_(std::move(on_end)),
      next_retry_(options.first_retry) {}

Status UvmDetector::start() {
  Result<os::Fd> process = kernel_.pidfd_open(target_.pid);
  if (!process) return explain_getfd(process.error(), target_.pid);
  process_ = std::move(*process);
  Result<os::Watch> gone = loop_.watch_readable(process_.get(), [this] { target_is_gone(); });
  if (!gone) return propagate(gone);
  gone_ = std::move(*gone);
  Status started = try_to_attach();
  if (started && !attached()) started = retry_later();
  if (!started) let_go();
  return started;
}

/// Succeeds without an attachment when the target simply has no VA space yet.
Status UvmDetector::try_to_attach() {
  const Result<std::vector<int>> numbers = candidates();
  if (!numbers) return propagate(numbers);
  for (const int number : *numbers) {
    if (Status done = attach(number); !done) return done;
  }
  return {};
}

Result<std::vector<int>> UvmDetector::candidates() {
  const std::string directory = "/proc/" + std::to_string(target_.pid) + "/fd";
  const Result<std::vector<std::string>> names = kernel_.list_directory(directory);
  // A target that just died has no such directory any more; its pidfd says so in a moment.
  if (!names && names.error().code == ErrorCode::NotFound) return std::vector<int>();
  if (!names) return explain_getfd(names.error(), target_.pid);
  std::vector<int> numbers;
  const std::string wanted = kernel_.uvm_link_target();
  for (const std::string& name : *names) {
    if (numbers.size() == most_candidates) break;
    int number = -1;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec != std::errc{}) continue;
    // Descriptors come and go while we look, so a link that cannot be read is no error.
    const Result<std::string> link = kernel_.read_link(directory + "/" + name);
    if (link && *link == wanted) numbers.push_back(number);
  }
  return numbers;
}

/// Succeeds without an attachment when this descriptor is no VA space or is gone again.
Status UvmDetector::attach(int remote_number) {
  const Result<os::Fd> uvm_fd = kernel_.pidfd_getfd(process_, remote_number);
  if (!uvm_fd && uvm_fd.error().code == ErrorCode::PermissionDenied) {
    return explain_getfd(uvm_fd.error(), target_.pid);
  }
  if (!uvm_fd) return {};
  Result<UvmQueue> queue = UvmQueue::open(kernel_, *uvm_fd, wanted_events(options_));
  if (!queue && queue.error().code == ErrorCode::Unsupported) return {};
  if (!queue) return propagate(queue);
  Attachment& attachment = attachments_.emplace_back(Attachment{std::move(*queue), {}});
  Result<os::Watch> readable = loop_.watch_readable(attachment.queue.fd().get(), [this, &attachment] {
    attachment.queue.drain(kernel_, [this](const abi::UvmEvent& event) { handle(event); });
  });
  if (!readable) {
    attachments_.pop_back();
    return propagate(readable);
  }
  attachment.readable = std::move(*readable);
  return {};
}

Status UvmDetector::retry_later() {
  Result<os::Watch> timer = loop_.after(next_retry_, [this] { retry(); });
  if (!timer) return propagate(timer);
  retry_ = std::move(*timer);
  next_retry_ = std::min(next_retry_ * 2, options_.longest_retry);
  return {};
}

void UvmDetector::retry() {
  Status done = try_to_attach();
  if (done && !attached()) done = retry_later();
  if (!done) end(done.error());
}

void UvmDetector::read_now() {
  for (Attachment& attachment : attachments_) {
    attachment.queue.drain(kernel_, [this](const abi::UvmEvent& event) { handle(event); });
  }
}

void UvmDetector::target_is_gone() {
  // The driver may have told of the fault that ended the target just before: that comes first.
  read_now();
  end(Error{ErrorCode::NotFound, "process " + std::to_string(target_.pid) + " is gone", {}});
}

void UvmDetector::handle(const abi::UvmEvent& event) {
  if (event.type() == abi::UvmEventType::FatalFault) return report(event.as<abi::UvmFatalFault>());
  if (event.type() != abi::UvmEventType::GpuFault) {
    ++counters_.other;
    return;
  }
  ++counters_.page_faults;
  const auto info = event.as<abi::UvmGpuFault>();
  if (info.client_type == abi::UvmClientType::Hub) hub_fault_address_ = info.address;
}

void UvmDetector::report(const abi::UvmFatalFault& info) {
  ++counters_.fatal_faults;
  fault::Fault fault;
  fault.when = clock_.now();
  const bool from_the_hub = hub_fault_address_ == info.address;
  fault.fault_class = from_the_hub ? fault::FaultClass::MmuNonReplayable : fault::FaultClass::MmuReplayable;
  fault.kind = "fatal fault: " + word(info.access_type) + ", " + word(info.fault_type);
  fault.gpu = target_.gpu;
  fault.domain = target_.domain;
  fault.tenant = target_.tenant;
  fault.pid = target_.pid;
  fault.address = info.address;
  fault.source = fault::FaultSource::UvmEvent;
  on_fault_(fault);
}

void UvmDetector::let_go() {
  gone_.cancel();
  retry_.cancel();
  attachments_.clear();
  process_.reset();
}

void UvmDetector::end(const Error& error) {
  let_go();
  on_end_(error);
}

}  // namespace firebreak::watch
