// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/core_dump_detector.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "ground/os/processes.h"

namespace firebreak::watch {

Status CoreDumpDetector::follow(const Target& target, Parentage) {
  Speaker made{target, {}, {}, nullptr, {}, PossibleWriter(at_.kernel, target.pid)};
  Speaker& speaker = speakers_.insert_or_assign(target.pid, std::move(made)).first->second;
  follow_file(speaker);
  return {};
}

/// Follows the file where CUDA will tell of faults.
void CoreDumpDetector::follow_file(Speaker& speaker) {
  const pid_t pid = speaker.target.pid;
  const auto environment = os::environment_of(at_.kernel, pid);
  if (os::variable_in(environment, fault::core_dump_progress_variable) != "1") return;
  auto file = std::make_unique<ErrorFile>(
      at_.loop, at_.kernel, pid, [this, pid](std::string_view line) { read_line(pid, line); },
      [this, pid](std::uint64_t bytes) { miss(pid, bytes); });
  if (const Status started = file->start(); !started) {
    return spdlog::info("what process {} says of its faults is not heard: {}", pid,
                        to_string(started.error()));
  }
  speaker.file = std::move(file);
}

/// Tells of lost words; there is no danger: they would only have said whose fault it is, and who writes the
/// file could raise as many.
void CoreDumpDetector::miss(pid_t pid, std::uint64_t bytes) {
  const auto speaker = speakers_.find(pid);
  if (speaker == speakers_.end()) return;
  auto& last = speaker->second.last_gap;
  if (last && at_.clock.now() - *last < between_gaps) return;
  last = at_.clock.now();
  Gap gap;
  gap.source = fault::FaultSource::CoreDump;
  gap.pid = pid;
  gap.domain = speaker->second.target.domain;
  gap.text = std::to_string(bytes) + " bytes of its standard error came faster than they can be read";
  gap.danger = false;
  at_.on_gap(gap);
}

void CoreDumpDetector::stop(pid_t pid) {
  const auto speaker = speakers_.find(pid);
  if (speaker == speakers_.end()) return;
  speaker->second.file.reset();
  auto timer = at_.loop.after(at_.options.merge_window, [this, pid] { speakers_.erase(pid); });
  if (timer) {
    speaker->second.forgetting = std::move(*timer);
  } else {
    speakers_.erase(speaker);
  }
}

void CoreDumpDetector::read_now(pid_t pid) {
  const auto speaker = speakers_.find(pid);
  if (speaker != speakers_.end() && speaker->second.file) speaker->second.file->read_now();
}

void CoreDumpDetector::note_output(pid_t pid, std::string_view text) {
  const auto speaker = speakers_.find(pid);
  if (speaker == speakers_.end()) return;
  speaker->second.output.take(text, [this, pid](std::string_view line) { read_line(pid, line); });
}

void CoreDumpDetector::read_line(pid_t pid, std::string_view line) {
  const auto speaker = speakers_.find(pid);
  if (speaker == speakers_.end()) return;
  const auto exception = speaker->second.core_dump.read(line);
  if (!exception) return;
  if (!is_looked_into(speaker->second, *exception)) return;
  if (const auto other = other_writer(pid, speaker->second))
    return spdlog::info("process {} or {} tells of a fault; they write to one file", pid, *other);
  note_exception(pid, *exception);
}

bool CoreDumpDetector::is_looked_into(Speaker& speaker, const fault::CoreDumpException& exception) const {
  const bool names_kernel = !exception.kernel.empty();
  const bool kernel_followed = std::exchange(speaker.kernel_follows, false);
  if (names_kernel && kernel_followed) return true;
  const Monotonic now = at_.clock.now();
  if (speaker.last_exception && now - *speaker.last_exception < between_exceptions) return false;
  speaker.last_exception = now;
  speaker.kernel_follows = !names_kernel;
  return true;
}

std::optional<pid_t> CoreDumpDetector::other_writer(pid_t pid, Speaker& speaker) {
  if (speaker.file == nullptr) return std::nullopt;
  const Monotonic now = at_.clock.now();
  const auto user = speaker.writer.user(now);
  for (auto& [other, of_other] : speakers_) {
    if (other != pid && of_other.writer.may_write(speaker.file->identity(), user, now)) return other;
  }
  return std::nullopt;
}

void CoreDumpDetector::note_exception(pid_t pid, const fault::CoreDumpException& exception) {
  const auto speaker = speakers_.find(pid);
  if (speaker == speakers_.end()) return;
  fault::Fault fault = fault::from_core_dump(exception, pid, at_.clock.now());
  set_subject(fault, speaker->second.target);
  at_.on_fault(fault);
}

}  // namespace firebreak::watch
