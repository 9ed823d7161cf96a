// SPDX-License-Identifier: Apache-2.0
#include "os/background_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <utility>

namespace firebreak::os {

std::thread start_background_thread(const std::string& name, std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
  return thread;
}

void run_in_children(void (*action)()) { ::pthread_atfork(nullptr, nullptr, action); }

void run_at_exit(void (*action)()) { std::atexit(action); }

}  // namespace firebreak::os
