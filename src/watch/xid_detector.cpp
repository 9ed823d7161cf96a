// SPDX-License-Identifier: Apache-2.0
#include "watch/xid_detector.h"

#include <fcntl.h>

#include <array>
#include <charconv>
#include <utility>

#include "fault/xid.h"

namespace firebreak::watch {
namespace {

constexpr const char* log_path = "/dev/kmsg";
/// The kernel's own limit of a record is below this.
constexpr std::size_t record_bytes_max = 8192;
/// So that a flood of messages does not starve the loop; what is left is read on its next round.
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
                         XidDetectorOptions options, FaultCallback on_fault, EndCallback on_end)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      options_(std::move(options)),
      on_fault_(std::move(on_fault)),
      on_end_(std::move(on_end)),
      plan_(options_.reading) {}

Status XidDetector::start() {
  Result<os::Fd> log = kernel_.open(log_path, O_RDONLY | O_NONBLOCK);
  if (!log) return explain(log.error());
  log_ = std::move(*log);
  if (Status skipped = skip_backlog(); !skipped) return explain(skipped.error());

  Result<os::Watch> readable = loop_.watch_readable(log_.get(), [this] { read_log(); });
  if (!readable) return explain(readable.error());
  readable_ = std::move(*readable);
  listen_to_bell();
  keep_pace();
  return {};
}

void XidDetector::listen_to_bell() {
  options_.reading.bell = false;
  Result<os::KernelLogBell> bell = kernel_.kernel_log_bell();
  if (bell) {
    bell_ = std::move(*bell);
    for (const os::Fd* fd : bell_->fds()) {
      Result<os::Watch> rings = loop_.watch_readable(fd->get(), [this, fd] { ring(*fd); });
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
  // What it counts does not matter; a stand-in stays readable until it is read.
  static_cast<void>(kernel_.read(fd, count));
  plan_.message(clock_.now());
  read_log();
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
  // Without a timer poll() still wakes us, later.
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
  RecordBuffer buffer;
  for (int i = 0; i < most_records_a_round; ++i) {
    const Result<std::size_t> size = kernel_.read(log_, buffer);
    if (size && *size > 0) {
      handle(std::string_view(reinterpret_cast<const char*>(buffer.data()), *size));
    } else if (size) {
      return end(Error{ErrorCode::Unavailable, std::string(log_path) + " ended", {}});
    } else if (is_overrun(size.error())) {
      ++counters_.overruns;
    } else if (is_empty(size.error())) {
      return keep_pace();
    } else {
      return end(size.error());
    }
  }
  keep_pace();
}

void XidDetector::handle(std::string_view record) {
  ++counters_.records;
  plan_.message(clock_.now());
  bool malformed = false;
  const std::optional<std::string_view> message = kernel_message(record, malformed);
  if (malformed) ++counters_.malformed;
  if (!message) return;
  const std::optional<fault::XidLine> line = fault::parse_xid(*message);
  if (!line) return;
  ++counters_.faults;
  const auto gpu = options_.gpu_of_pci.find(line->pci);
  on_fault_(fault::from_xid(*line, clock_.now(), gpu == options_.gpu_of_pci.end() ? 0 : gpu->second));
}

void XidDetector::end(const Error& error) {
  readable_.cancel();
  rings_.clear();
  sweep_.cancel();
  log_.reset();
  on_end_(error);
}

}  // namespace firebreak::watch
