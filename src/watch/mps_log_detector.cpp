// SPDX-License-Identifier: Apache-2.0
#include "watch/mps_log_detector.h"

#include <fcntl.h>

#include <array>
#include <utility>

#include "fault/mps_log.h"
#include "os/memory.h"

namespace firebreak::watch {
namespace {

constexpr const char* log_name = "server.log";
/// Nothing that the server writes is longer; a log without line ends must not eat the memory.
constexpr std::size_t longest_line = 16 * 1024;

}  // namespace

MpsLogDetector::MpsLogDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Options options,
                               FaultCallback on_fault)
    : loop_(loop),
      kernel_(kernel),
      clock_(clock),
      options_(std::move(options)),
      on_fault_(std::move(on_fault)) {}

Status MpsLogDetector::start() {
  Result<os::FileWatch> changes = os::FileWatch::of(options_.directory, log_name);
  if (!changes) return propagate(changes, "no MPS server log");
  changes_ = std::move(*changes);
  Result<os::Watch> readable = loop_.watch_readable(changes_->fd().get(), [this] { changed(); });
  if (!readable) return propagate(readable, "no MPS server log");
  readable_ = std::move(*readable);
  open_log(true);
  return {};
}

/// The log may not be there yet; it is opened again when it appears.
void MpsLogDetector::open_log(bool from_its_end) {
  unfinished_.clear();
  position_ = 0;
  Result<os::Fd> log = kernel_.open(options_.directory + "/" + log_name, O_RDONLY | O_NONBLOCK);
  log_ = log ? std::move(*log) : os::Fd();
  if (!from_its_end || !log_) return;
  std::array<std::byte, 4096> skipped{};
  for (Result<std::size_t> size = kernel_.read(log_, skipped); size && *size > 0;
       size = kernel_.read(log_, skipped)) {
    position_ += *size;
  }
}

void MpsLogDetector::changed() {
  const os::FileWatch::Changes changes = changes_->read();
  if (!changes.written) return;
  read_log();
  // Cut off in place, as log rotation by copying does; then what it holds now is new.
  const auto size = log_ ? os::file_size(log_.get()) : Result<std::size_t>(0);
  const bool cut_off = size && *size < position_;
  if (!changes.replaced && !cut_off && log_) return;
  open_log(false);
  read_log();
}

void MpsLogDetector::read_log() {
  if (!log_) return;
  std::array<std::byte, 4096> buffer{};
  while (true) {
    const Result<std::size_t> size = kernel_.read(log_, buffer);
    if (!size || *size == 0) return;
    position_ += *size;
    unfinished_.append(reinterpret_cast<const char*>(buffer.data()), *size);
    take_lines();
  }
}

void MpsLogDetector::take_lines() {
  std::size_t begin = 0;
  for (std::size_t end = unfinished_.find('\n'); end != std::string::npos;
       end = unfinished_.find('\n', begin)) {
    const auto line = fault::parse_mps_log(std::string_view(unfinished_).substr(begin, end - begin));
    begin = end + 1;
    if (!line) continue;
    fault::Fault fault;
    fault.kind = "MPS log: " + line->text;
    if (line->event == fault::MpsLogEvent::ClientLeft) {
      fault.fault_class = fault::FaultClass::Termination;
      fault.conclusive = false;
    }
    fault.gpu = options_.gpu;
    fault.domain = options_.domain;
    fault.pid = line->client;
    fault.when = clock_.now();
    fault.source = fault::FaultSource::MpsLog;
    on_fault_(fault);
  }
  unfinished_.erase(0, begin);
  if (unfinished_.size() > longest_line) unfinished_.clear();
}

}  // namespace firebreak::watch
