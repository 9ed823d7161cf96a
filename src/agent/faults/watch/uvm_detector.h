// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "agent/faults/watch/detector.h"
#include "agent/faults/watch/uvm_listener.h"

namespace firebreak::watch {

/// UVM's events of every process that is followed, as soon as it has a VA space.
class UvmDetector final : public Detector {
 public:
  explicit UvmDetector(const Workplace& workplace) : at_(workplace) {}

  /// Starts; says whether this machine has such events at all.
  Status start() override;
  /// Never fails: where there is no descriptor left it is tried again and again, and else said.
  Status follow(const Target& target, Parentage parentage) override;
  void stop(pid_t pid) override;
  void read_now(pid_t pid) override;
  UvmHearing hears_uvm_of(pid_t pid) const override;
  void look_again(pid_t pid) override;
  /// Listens once its events are heard, and not before.
  bool listen_to_page_faults(pid_t pid) override;

 private:
  struct Followed {
    Target target;
    std::unique_ptr<UvmListener> listener;  ///< null: it could not be had
    bool lacks_descriptors = false;
    os::Watch again;
  };

  void listen_to(Followed& followed);
  void listen_later(pid_t pid, const Error& why);
  void note_attached(pid_t pid);
  void note_end(pid_t pid, const Error& error);

  const Workplace& at_;
  bool works_ = true;  ///< false: the driver's events are of another kind
  std::map<pid_t, Followed> followed_;
};

}  // namespace firebreak::watch
