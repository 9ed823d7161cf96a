// SPDX-License-Identifier: Apache-2.0
/// The detectors of one GPU host behind one face: signals as they come, and incidents that are made of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/faults/fault/core_dump.h"
#include "agent/faults/fault/incident.h"
#include "agent/faults/watch/detectors.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

struct WatcherCallbacks {
  /// Takes each signal, at once; what decides in microseconds listens here.
  std::function<void(const fault::Fault&)> on_signal;
  /// Takes each page fault of a followed process, where uvm_page_faults or listen_to_page_faults() asks for
  /// them. Most are serviced and no fault; a fatal one is a signal as well.
  PageFaultCallback on_page_fault;
  /// UVM events of a followed process are heard from here on; possibly before follow() returns.
  std::function<void(pid_t)> on_uvm_heard;
  /// An incident that is new, has changed or is closed now. Valid during the call.
  std::function<void(const fault::Incident&)> on_incident;
  /// A followed process ended.
  std::function<void(const ProcessExit&)> on_exit;
  /// Words of a source were lost, or are from now on.
  GapCallback on_gap = nullptr;
};

/// The state of a source that serves the whole machine: heard or not.
struct SourceState {
  fault::FaultSource source = fault::FaultSource::Xid;
  std::optional<Error> missing;  ///< why it is not heard
  std::string remark;            ///< remark about one that is heard: a directory, a delay
};

/// Lives on the loop's thread. Callbacks must not destroy it.
class Watcher {
 public:
  /// `table`: of another one than all_detectors() only tests have need.
  Watcher(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, WatcherOptions options,
          WatcherCallbacks callbacks, const DetectorTable& table = all_detectors());
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

  /// Starts what watches the whole GPU. One line for each detector that this machine does not offer, with why
  /// and what to do about it.
  std::vector<std::string> start();
  /// How each is heard, in one order: as start() found it, or has become since.
  const std::vector<SourceState>& sources() const;
  /// Listens to one more place of a source; processes are told to it that are followed from now on.
  Status add(const DetectorRow& row);
  /// Watches a process: its end, and its UVM events as soon as it has a VA space. NotFound when there is none
  /// such.
  Status follow(const Target& target, Parentage parentage = Parentage::Stranger);
  /// A followed process is known to be in that domain.
  void place(pid_t pid, const std::string& domain);
  /// Watches a followed process's progress as well, for hangs. NotFound: it is not followed.
  Status follow_progress(pid_t pid, const ReadProgress& read, const ProgressOptions& options = {});
  /// Takes what a followed process wrote to its standard error, in pieces of any size: in CUDA's core dump
  /// mode it names the exception, and with it the culprit. Where that is a regular file, nobody has to say
  /// it.
  void note_output(pid_t pid, std::string_view text);
  /// Takes what a core dump of a followed process says.
  void note_exception(pid_t pid, const fault::CoreDumpException& exception);
  /// A followed process may have more GPU address spaces by now, as one has that holds several drivers.
  void look_again(pid_t pid);
  /// Listens to page faults of that followed process too, from now on; it pays with being watched more
  /// closely, and we with a wake for each. Returns whether they are heard: not before its UVM events are.
  bool listen_to_page_faults(pid_t pid);
  /// Takes all clients of a domain, as MPS answered when it was asked at `asked`.
  void note_clients(const std::string& domain, Monotonic asked, const std::vector<pid_t>& pids);
  /// That client is our own (fault::Merger::note_own_client()).
  void note_own_client(pid_t pid);
  /// A fault of that domain is not over until this is taken back (fault::Merger::set_going_on()).
  void set_going_on(const std::string& domain, bool goes_on);
  /// Takes the end of that process for no fault, from now on; where it is not followed, the MPS server's log
  /// tells of it.
  void expect_exit(pid_t pid);
  /// True when they are not heard for want of descriptors; that is tried again and again.
  bool lacks_uvm_of(pid_t pid) const;
  /// True when UVM events of the process are heard from here on.
  bool hears_uvm_of(pid_t pid) const;
  /// True when the driver's fault isolation will say what became of every fatal fault that UVM tells of now.
  bool hears_outcomes() const;
  /// Somebody else knows that a fault is under way: its Xid lines are looked for more closely for a while.
  /// Never necessary.
  void suspect();
  /// Closes what is open, so that on_incident has told everything.
  void finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace firebreak::watch
