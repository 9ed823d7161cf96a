// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_detectors.h"

#include <spdlog/spdlog.h>

namespace firebreak::agent {

std::vector<std::string> GpuDetectors::start(OnFault on_fault, OnExit on_exit) {
  on_fault_ = std::move(on_fault);
  on_exit_ = std::move(on_exit);
  std::vector<std::string> missing;
  xid_ = std::make_unique<watch::XidDetector>(
      loop_, kernel_, clock_, watch::XidDetectorOptions{},
      [this](const fault::Fault& fault) { on_fault_(fault); },
      [](const Error& error) { spdlog::error("no Xid lines any more: {}", to_string(error)); });
  if (auto started = xid_->start(); !started)
    missing.push_back("no Xid lines: " + to_string(started.error()));
  return missing;
}

Status GpuDetectors::follow(pid_t pid) {
  watch::Target target;
  target.pid = pid;
  auto report = [this](const fault::Fault& fault) { on_fault_(fault); };
  Followed followed;
  // The exit is told as such; whether it was a fault is for the agent to say, who knows who has finished.
  followed.exit = std::make_unique<watch::ExitDetector>(
      loop_, kernel_, clock_, target, watch::Parentage::Stranger, [](const fault::Fault&) {},
      [this](const watch::ProcessExit& exit) { ended(exit.pid); });
  if (auto started = followed.exit->start(); !started) return started;
  if (uvm_works_) {
    followed.uvm = std::make_unique<watch::UvmDetector>(
        loop_, kernel_, clock_, target, watch::UvmDetectorOptions{}, report,
        [pid](const Error& error) { spdlog::debug("UVM events of process {} end: {}", pid, error.message); });
    if (auto started = followed.uvm->start(); !started) {
      uvm_works_ = started.error().code == ErrorCode::NotFound;
      spdlog::warn("no UVM events of process {}: {}", pid, to_string(started.error()));
      followed.uvm.reset();
    }
  }
  followed_[pid] = std::move(followed);
  return {};
}

/// The UVM detector holds the dead process's address space: it goes at once, but not from inside its own
/// callback.
void GpuDetectors::ended(pid_t pid) {
  on_exit_(pid);
  loop_.post([this, pid] { followed_.erase(pid); });
}

}  // namespace firebreak::agent
