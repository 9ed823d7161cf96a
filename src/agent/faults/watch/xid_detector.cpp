// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/xid_detector.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "agent/faults/fault/xid.h"

namespace firebreak::watch {
namespace {

constexpr const char* log_path = "/dev/kmsg";
/// The kernel's own limit of a record is below this.
constexpr std::size_t record_bytes_max = 8192;
/// Largest number of records a round, so that a flood of messages does not starve the loop; the rest is read
/// on its next round.
constexpr int most_records_a_round = 256;
constexpr int most_records_of_backlog = 1'000'000;

using RecordBuffer = std::array<std::byte, record_bytes_max>;

/// A record was overwritten before we read it; the next read goes on with the oldest that is left.
bool is_overrun(const Error& error) { return error.code == ErrorCode::Protocol; }
bool is_empty(const Error& error) { return error.code == ErrorCode::Unavailable; }

/// The message of a record "PRIORITY,SEQUENCE,TIME,FLAGS;message" that the kernel itself wrote. A priority
/// above 7 carries another facility: a process wrote it, and a process must not be able to report a GPU
/// fault.
std::optional<std::string_view> kernel_message(std::string_view record, bool& malformed) {
  unsigned priority = 0;
  const auto number = std::from_chars(record.data(), record.data() + record.size(), priority);
  const std::size_t separator = record.find(';');
  malformed = number.ec != std::errc{} || separator == std::string_view::npos ||
              number.ptr >= record.data() + separator || *number.ptr != ',';
  if (malformed || priority > 7) return std::nullopt;
  return record.substr(separator + 1);
}

tl::unexpected<Error> explain(const Error& error) {
  if (error.code == ErrorCode::PermissionDenied) {
    return fail(error.code, "no Xid messages: " + error.message,
                "run as root or with CAP_SYSLOG, or allow it with sysctl kernel.dmesg_restrict=0");
  }
  return fail(error.code, "no Xid messages: " + error.message, error.hint);
}

}  // namespace

XidDetector::XidDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock,
                         XidDetectorOptions options, FaultCallback on_fault, GapCallback on_gap)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      options_(std::move(options)),
      on_fault_(std::move(on_fault)),
      on_gap_(std::move(on_gap)),
      plan_(options_.reading),
      next_retry_(options_.first_retry) {}

Status XidDetector::start() {
  if (Status opened = open_log(); !opened) return explain(opened.error());
  listen_to_bell();
  keep_pace();
  return {};
}

Status XidDetector::open_log() {
  Result<os::Fd> log = kernel_.open(log_path, O_RDONLY | O_NONBLOCK);
  if (!log) return propagate(log);
  log_ = std::move(*log);
  Status skipped = skip_backlog();
  Result<os::Watch> readable =
      skipped ? loop_.watch_first(log_.get(), [this] { read_log(); }) : Result<os::Watch>(propagate(skipped));
  if (!readable) {
    log_.reset();
    return propagate(readable);
  }
  readable_ = std::move(*readable);
  failed_before_ = false;
  return {};
}

void XidDetector::listen_to_bell() {
  options_.reading.bell = false;
  Result<os::KernelLogBell> bell = kernel_.kernel_log_bell();
  if (bell) {
    bell_ = std::move(*bell);
    for (const os::Fd* fd : bell_->fds()) {
      Result<os::Watch> rings = loop_.watch_first(fd->get(), [this, fd] { ring(*fd); });
      if (rings) rings_.push_back(std::move(*rings));
    }
    options_.reading.bell = rings_.size() == bell_->fds().size();
  } else if (bell.error().code != ErrorCode::Unsupported) {
    late_because_ = bell.error();
  }
  plan_ = ReadingPlan(options_.reading);
}

void XidDetector::ring(const os::Fd& fd) {
  std::array<std::byte, 8> count{};
  // The count does not matter; a stand-in stays readable until it is read.
  static_cast<void>(kernel_.read(fd, count));
  plan_.message(clock_.now());
  read_log();
}

std::string XidDetector::remark() const {
  return late_because_ ? "up to 4 ms late: " + to_string(*late_because_) : std::string();
}

void XidDetector::suspect() {
  if (!log_) return;
  plan_.suspicion(clock_.now());
  keep_pace();
}

/// Starts, changes or ends the timer when the plan has another period now.
void XidDetector::keep_pace() {
  const std::optional<Nanoseconds> period = plan_.period(clock_.now());
  if (period == period_) return;
  period_ = period;
  sweep_.cancel();
  if (!period) return;
  Result<os::Watch> sweep = loop_.every(*period, [this] { read_log(); });
  // poll() still wakes us without a timer, later.
  if (sweep) sweep_ = std::move(*sweep);
}

Status XidDetector::skip_backlog() {
  RecordBuffer buffer;
  for (int i = 0; i < most_records_of_backlog; ++i) {
    const Result<std::size_t> size = kernel_.read(log_, buffer);
    if (size && *size == 0) return {};
    if (!size && is_empty(size.error())) return {};
    if (!size && !is_overrun(size.error())) return propagate(size);
  }
  return fail(ErrorCode::Protocol, std::string(log_path) + " never ends");
}

void XidDetector::read_log() {
  if (!log_) return;
  RecordBuffer buffer;
  for (int i = 0; i < most_records_a_round; ++i) {
    const Result<std::size_t> size = kernel_.read(log_, buffer);
    if (size && *size == 0) {
      return lose_log(Error{ErrorCode::Unavailable, std::string(log_path) + " ended", {}});
    }
    if (!size && is_empty(size.error())) {
      failed_before_ = false;
      return keep_pace();
    }
    const bool failed = !size && !is_overrun(size.error());
    if (failed && std::exchange(failed_before_, true)) return lose_log(size.error());
    failed_before_ = failed;
    if (size) {
      handle(std::string_view(reinterpret_cast<const char*>(buffer.data()), *size));
    } else if (failed) {
      // The next record may be read, as with EINVAL for a record that is longer than any.
      ++counters_.failures;
      miss("a record of the kernel log could not be read: " + size.error().message);
    } else {
      ++counters_.overruns;
      miss("records of the kernel log were overwritten before they were read");
    }
  }
  keep_pace();
}

/// One word for all that a flood loses.
void XidDetector::miss(const std::string& what) {
  if (last_gap_ && clock_.now() - *last_gap_ < options_.between_gaps) return;
  last_gap_ = clock_.now();
  tell_gap(what);
}

void XidDetector::tell_gap(const std::string& what) {
  Gap gap;
  gap.source = fault::FaultSource::Xid;
  gap.text = what;
  gap.silent_because = off_because_;
  on_gap_(gap);
}

void XidDetector::lose_log(const Error& error) {
  ++counters_.failures;
  readable_.cancel();
  sweep_.cancel();
  period_.reset();
  log_.reset();
  off_because_ = error;
  retry_later();
  tell_gap("the kernel log is not read any more, and is opened again: " + to_string(error));
}

void XidDetector::retry_later() {
  retry_ = loop_.after_or_now(next_retry_, [this] { retry(); });
  next_retry_ = std::min(next_retry_ * 2, options_.longest_retry);
}

/// Messages that were printed meanwhile are old by now, and a domain may have recovered since: they are
/// passed over.
void XidDetector::retry() {
  retry_.cancel();
  if (Status opened = open_log(); !opened) {
    off_because_ = opened.error();
    return retry_later();
  }
  ++counters_.reopened;
  off_because_.reset();
  keep_pace();
  tell_gap("the kernel log is read again, and what it said meanwhile was missed");
}

void XidDetector::handle(std::string_view record) {
  ++counters_.records;
  next_retry_ = options_.first_retry;
  plan_.message(clock_.now());
  bool malformed = false;
  const std::optional<std::string_view> message = kernel_message(record, malformed);
  if (malformed) ++counters_.malformed;
  if (!message) return;
  const std::optional<fault::XidLine> line = fault::parse_xid(*message);
  if (!line) return;
  ++counters_.faults;
  on_fault_(fault::from_xid(*line, clock_.now()));
}

}  // namespace firebreak::watch
