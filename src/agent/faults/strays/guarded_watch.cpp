// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/strays/guarded_watch.h"

#include <utility>

namespace firebreak::strays {

GuardedWatch::GuardedWatch(os::EventLoop& loop, os::Kernel& kernel, GuardCallbacks callbacks,
                           StrayWatchOptions options)
    : strays_(loop, kernel, options,
              {std::move(callbacks.on_stray), std::move(callbacks.on_guard),
               [this](pid_t pid) { return watcher_ != nullptr && watcher_->listen_to_page_faults(pid); }}) {}

watch::WatcherCallbacks GuardedWatch::hear(watch::WatcherCallbacks callbacks) {
  watch::WatcherCallbacks heard = callbacks;
  heard.on_signal = [this, tell = std::move(callbacks.on_signal)](const fault::Fault& fault) {
    strays_.note_signal(fault);
    if (tell) tell(fault);
  };
  heard.on_page_fault = [this, tell = std::move(callbacks.on_page_fault)](const watch::PageFault& seen) {
    strays_.note_page_fault(seen);
    if (tell) tell(seen);
  };
  heard.on_uvm_heard = [this, tell = std::move(callbacks.on_uvm_heard)](pid_t pid) {
    strays_.expect_guard(pid);
    if (tell) tell(pid);
  };
  heard.on_exit = [this, tell = std::move(callbacks.on_exit)](const watch::ProcessExit& exit) {
    ended_ = {exit.pid, strays_.guard_of(exit.pid), {}};
    ended_.summary = strays_.forget(exit.pid);
    if (tell) tell(exit);
    ended_ = {};
  };
  return heard;
}

std::shared_ptr<const guard::GuardView> GuardedWatch::guard_of(pid_t pid) const {
  return ended_.pid == pid ? ended_.guard : strays_.guard_of(pid);
}

Summary GuardedWatch::summary_of(pid_t pid) const {
  return ended_.pid == pid ? ended_.summary : strays_.summary_of(pid);
}

}  // namespace firebreak::strays
