// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "agent/faults/strays/guarded_watch.h"
#include "agent/faults/strays/sparse_cover.h"
#include "agent/faults/watch/remains.h"
#include "agent/faults/watch/report.h"
#include "agent/faults/watch/watcher.h"
#include "agent/loop/surroundings.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// The detectors of src/agent/faults/watch. The agent decides on single signals, the earliest first; what
/// they make together, and who caused it, goes to the log.
class GpuDetectors final : public Detectors {
 public:
  /// The four references outlive it. Of `domains`, the servers' logs are listened to.
  /// `gpus`: the machine's, as NVML counts them. `nvml_library`: what to
  /// load for NVML's events. `sparse`: low addresses of processes without a guard swallow strays.
  GpuDetectors(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Domains& domains,
               std::string nvml_library, std::vector<MachineGpu> gpus = {}, bool sparse = false)
      : loop_(loop),
        kernel_(kernel),
        clock_(clock),
        domains_(domains),
        nvml_library_(std::move(nvml_library)),
        gpus_(std::move(gpus)),
        sparse_wanted_(sparse),
        remains_(loop, watch::find_by_nvml(nvml_library_)) {}

  std::vector<std::string> start(Callbacks callbacks) override;
  std::vector<std::string> not_heard() const override;
  Status follow(const watch::Target& target) override;
  void place(pid_t pid, const std::string& domain) override;
  Status follow_progress(pid_t pid, watch::ReadProgress read) override;
  void look_again(pid_t pid) override;
  void note_clients(const std::string& domain, const mps::ClientList& clients) override;
  void note_own_client(pid_t pid) override;
  void set_going_on(const std::string& domain, bool goes_on) override {
    watcher_->set_going_on(domain, goes_on);
  }
  void note_output(pid_t pid, std::string_view text) override;
  void note_exception(pid_t pid, const fault::CoreDumpException& exception) override;
  void expect_exit(pid_t pid) override;
  strays::Summary straying_of(pid_t pid) const override;
  std::vector<std::string> lacks_of(pid_t pid) const override;
  std::shared_ptr<const guard::GuardView> guard_of(pid_t pid) const override;
  void look_for_remains(pid_t pid, std::function<void(const std::string&)> tell) override;

 private:
  watch::WatcherOptions options() const;
  watch::WorkLeft work_left_by(pid_t pid) const;
  watch::WatcherCallbacks heard(Callbacks callbacks);
  bool is_acted_on(const fault::Fault& fault) const;

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Domains& domains_;
  std::string nvml_library_;
  std::vector<MachineGpu> gpus_;
  bool sparse_wanted_;
  watch::Remains remains_;
  std::unique_ptr<strays::GuardedWatch> strays_;
  std::set<pid_t> strangers_;                    ///< processes whose address space is nothing of ours
  std::unique_ptr<strays::SparseCover> sparse_;  ///< null: not wanted
  std::unique_ptr<watch::Watcher> watcher_;
};

}  // namespace firebreak::agent
