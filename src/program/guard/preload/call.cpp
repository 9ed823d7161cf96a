// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>

#include "ground/os/self.h"
#include "program/guard/preload/hooks.h"
#include "program/guard/preload/process_driver.h"
#include "program/guard/preload/process_guard.h"
#include "program/parking_client/mode_by_calls.h"
#include "program/virtual/process.h"

namespace firebreak::guard {
namespace {

/// Time for which the first context waits for an agent that does not answer.
constexpr Milliseconds answer_patience{500};

/// Enters the mode with the first context of a client of MPS that has the preload by its environment alone.
/// Instances of a driver have it by theirs. The agent tells what goes wrong: the domain is not parked while
/// the process is there.
void enter_core_dump_mode() {
  static std::atomic<bool> has_asked{false};
  const auto socket = os::environment_variable("FIREBREAK_SOCKET");
  const bool is_client = os::environment_variable("CUDA_MPS_PIPE_DIRECTORY").has_value();
  if (!socket || !is_client || virtual_driver::process() != nullptr || has_asked.exchange(true)) return;
  const Bypass bypass;
  const cuda::Driver* const driver = ProcessDriver::library(nullptr);
  if (driver == nullptr) return;
  const auto ask = [socket = *socket](const abi::Message& question) {
    return link::ask_once(socket, question, answer_patience);
  };
  // It is there until the process ends.
  const std::shared_ptr<const cuda::Driver> kept(std::shared_ptr<void>(), driver);
  park::enter_mode_whenever(kept, ask, [](const std::function<void()>& run) {
    const Bypass of_thread;
    run();
  });
}

}  // namespace

Guard* Call::guard() const {
  ProcessGuard* const process = ProcessGuard::get();
  if (process == nullptr) return nullptr;
  process->guard().start_within_context();
  return &process->guard();
}

Guard* Call::guard_if_on() const {
  ProcessGuard* const process = ProcessGuard::get();
  return process == nullptr || !process->guard().is_on() ? nullptr : &process->guard();
}

CompletionMarkers* Call::markers() const { return markers_of_process(); }

void Call::context_made(CUcontext context) const {
  enter_core_dump_mode();
  ProcessGuard* const process = ProcessGuard::get();
  if (process == nullptr) return;
  process->guard().start();
  if (process->markers() != nullptr) process->markers()->note_context(context);
}

}  // namespace firebreak::guard
