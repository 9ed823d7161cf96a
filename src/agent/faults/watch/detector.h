// SPDX-License-Identifier: Apache-2.0
/// The interface of detectors, and all that a Watcher knows of them besides the table in
/// agent/faults/watch/detectors.h.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/faults/fault/core_dump.h"
#include "agent/faults/watch/page_fault.h"
#include "agent/faults/watch/progress.h"
#include "agent/faults/watch/target.h"
#include "agent/faults/watch/watcher_options.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

/// Says whether UVM's words about a process are heard.
enum class UvmHearing { No, Yes, NoDescriptors };

/// Listens to one source, for the whole machine and for each process that is followed. All of it happens on
/// the loop's thread. What it does not care about it leaves out.
class Detector {
 public:
  Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;
  virtual ~Detector() = default;

  /// Listens from now on to what is said of the whole machine. Fails where the source is not there: one line,
  /// with what to do about it. It is asked all the same to follow processes.
  virtual Status start() { return {}; }
  /// Listens from now on to what is said of a process, in the place of one that had the number before. Fails
  /// only where the process cannot be followed at all.
  virtual Status follow(const Target&, Parentage) { return {}; }
  /// Tells what waits to be read of that process, and listens to it no more.
  virtual void stop(pid_t) {}

  /// Something else says that a fault is under way, or may be.
  virtual void suspect() {}
  /// Tells what waits to be read of a process, ahead of the loop.
  virtual void read_now(pid_t) {}

  /// Returns what else there is to say of a source that is heard, once it has started: a directory, a delay.
  virtual std::string remark() const { return {}; }
  virtual UvmHearing hears_uvm_of(pid_t) const { return UvmHearing::No; }
  /// True when it tells what became of every fatal fault that UVM tells of now.
  virtual bool tells_outcomes() const { return false; }

  // These serve what a Watcher is asked for, of a process that is followed.
  /// Looks again: the process may have more GPU address spaces by now.
  virtual void look_again(pid_t) {}
  virtual bool listen_to_page_faults(pid_t) { return false; }
  virtual Status follow_progress(const Target&, const ReadProgress&, const ProgressOptions&) { return {}; }
  virtual void note_output(pid_t, std::string_view) {}
  /// A core dump of a process names an exception of its own.
  virtual void note_exception(pid_t, const fault::CoreDumpException&) {}
};

/// The things that detectors are made with, and those whom they tell. Outlives them.
struct Workplace {
  os::EventLoop& loop;
  os::Kernel& kernel;
  const Clock& clock;
  WatcherOptions options;
  FaultCallback on_fault;
  GapCallback on_gap;
  PageFaultCallback on_page_fault;
  /// UVM's words about that process are heard from here on.
  std::function<void(pid_t)> on_uvm_heard;
  /// A followed process ended; `fault`: its end as a signal, unless it was expected.
  std::function<void(const ProcessExit& exit, const std::optional<fault::Fault>& fault)> on_exit;
  /// Somebody has become a client of a domain; empty: its number was not told.
  std::function<void(const std::string& domain, std::optional<pid_t> client)> on_client;
  /// True when that process was announced to end.
  std::function<bool(pid_t)> is_expected_to_end;
};

}  // namespace firebreak::watch
