// SPDX-License-Identifier: Apache-2.0
/// Rows of the table of imports: threads, what they have for themselves, and what is done at the end.
#include <signal.h>
#include <unistd.h>

#include "program/instance/rows.h"

namespace firebreak::instance::rows {

int start_thread(Taken& taken, pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*),
                 void* argument) {
  return taken.threads.start(id, attributes, run, argument);
}
int join_thread(Taken& taken, pthread_t id, void** result) { return taken.threads.join(id, result); }
int detach_thread(Taken& taken, pthread_t id) { return taken.threads.detach(id); }

/// Serves the program's threads as well, whose signal it is not: while it is blocked it does nothing, and
/// inside a driver nobody sends it.
int set_mask(Taken&, int how, const sigset_t* set, sigset_t* before) {
  if (set == nullptr || how == SIG_UNBLOCK || Held::thread() == nullptr)
    return ::pthread_sigmask(how, set, before);
  sigset_t allowed = *set;
  sigdelset(&allowed, Threads::signal());
  return ::pthread_sigmask(how, &allowed, before);
}

int set_mask_of_process(Taken& taken, int how, const sigset_t* set, sigset_t* before) {
  const int error = set_mask(taken, how, set, before);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int make_key(Taken& taken, pthread_key_t* key, void (*destroy)(void*)) {
  return taken.keys.add(key, destroy);
}
int delete_key(Taken& taken, pthread_key_t key) { return taken.keys.remove(key); }

int at_exit(Taken& taken, void (*action)()) {
  taken.exits.add(action);
  return 0;
}
/// Whichever library of the copy's it is for: they go together.
int at_exit_with(Taken& taken, void (*action)(void*), void* argument, void*) {
  taken.exits.add([action, argument] { action(argument); });
  return 0;
}
int on_exit_with(Taken& taken, void (*action)(int, void*), void* argument) {
  taken.exits.add([action, argument] { action(0, argument); });
  return 0;
}
/// A library that is unloaded asks for this. Nothing of the driver's runs once more.
void run_exits_of(Taken&, void*) {}

/// Values that a thread has for itself stay until the copy goes.
int at_thread_exit(Taken&, void (*)(void*), void*, void*) { return 0; }

/// A child of fork() has nothing of a copy, and touches nothing of it.
int at_fork(Taken&, void (*)(), void (*)(), void (*)()) { return 0; }
int at_fork_of(Taken&, void (*)(), void (*)(), void (*)(), void*) { return 0; }

}  // namespace firebreak::instance::rows
