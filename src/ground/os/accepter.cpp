// SPDX-License-Identifier: Apache-2.0
#include "ground/os/accepter.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "ground/base/clock.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

constexpr int interrupting_signal = SIGURG;
/// Pause between two signals: a signal that comes just before an accept() ends none.
constexpr Milliseconds between_signals{1};

/// Does nothing, but without SA_RESTART what waits ends with EINTR.
void let_signal_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(interrupting_signal, &action, nullptr);
}

void take_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, interrupting_signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

struct Accepter::State {
  Fd listener;

  std::mutex mutex;  ///< guards all below
  std::condition_variable changed;
  OnAccepted asked;
  bool is_running = false;
  bool is_accepting = false;
  bool is_ending = false;
  bool has_ended = false;
  pthread_t thread{};

  void serve();
  void interrupt();
};

/// The accepter's thread.
void Accepter::State::serve() {
  take_signal();
  std::unique_lock lock(mutex);
  thread = ::pthread_self();
  for (;;) {
    changed.wait(lock, [this] { return is_ending || asked; });
    if (is_ending) break;
    const OnAccepted on_accepted = std::exchange(asked, nullptr);
    is_accepting = true;
    lock.unlock();
    auto accepted = accept_waiting(listener.get());
    if (accepted) accepted->close_by(listener.closer());
    lock.lock();
    is_accepting = false;
    lock.unlock();
    on_accepted(std::move(accepted));
    lock.lock();
  }
  // The lock is held: without it nobody sends the signal, and the thread is there as long as this is false.
  has_ended = true;
  changed.notify_all();
}

void Accepter::State::interrupt() {
  std::unique_lock lock(mutex);
  while (!has_ended) {
    ::pthread_kill(thread, interrupting_signal);
    changed.wait_for(lock, between_signals);
  }
}

Accepter::Accepter(Fd listener) : state_(std::make_shared<State>()) {
  state_->listener = std::move(listener);
}

/// An accept() that waits ends with the next client where no thread can be started for it.
Accepter::~Accepter() {
  bool is_accepting = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
    is_accepting = state_->is_accepting;
  }
  state_->changed.notify_all();
  if (is_accepting) (void)start_detached_thread("fb-interrupt", [state = state_] { state->interrupt(); });
}

int Accepter::listener() const { return state_->listener.get(); }

Status Accepter::accept(OnAccepted on_accepted) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_running) {
    let_signal_interrupt();
    auto started = start_detached_thread("fb-accept", [state = state_] { state->serve(); });
    if (!started) return started;
    state_->is_running = true;
  }
  state_->asked = std::move(on_accepted);
  state_->changed.notify_all();
  return {};
}

}  // namespace firebreak::os
