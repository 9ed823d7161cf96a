// SPDX-License-Identifier: Apache-2.0
#include "program/instance/threads.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "ground/os/memory.h"

namespace firebreak::instance {
namespace {

constinit thread_local CopyThread* own = nullptr;

/// The action of the signal before a throw, for threads that are no copy's. Guarded by throwing.
struct sigaction before {};
constinit std::mutex throwing;

/// True in a handler of the C library's own signals: somebody waits for the thread to answer one (setuid() of
/// any thread waits for all). The C library has them blocked there, and nowhere else while a thread works.
bool answers_the_c_library(const void* context) {
  constexpr int setxid = 33;  // SIGSETXID in glibc's internals; SIGCANCEL is 32
  std::uint64_t blocked = 0;  // the kernel's form, since the C library's calls leave its own signals out
  std::memcpy(&blocked, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof blocked);
  return (blocked >> (setxid - 1) & 1) != 0;
}

void take_back(int number, siginfo_t* info, void* context) {
  CopyThread* const thread = own;
  if (thread == nullptr || !thread->must_end.load()) {
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
      before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(number);
    }
    return;
  }
  if (!thread->is_inside.load() || thread->held.load() != 0) return;  // the thread looks itself as it leaves
  if (answers_the_c_library(context)) return;                         // the signal comes again soon
  __builtin_longjmp(thread->beginning, 1);
}

/// Makes the signal ours for as long as threads are ended. Where one of them may still get it, it stays so:
/// what Linux does of itself would end the process.
class SignalTaken {
 public:
  SignalTaken() {
    struct sigaction ours {};
    struct sigaction found {};
    ours.sa_sigaction = &take_back;
    ours.sa_flags = SA_SIGINFO;  // whoever waits inside what it holds comes out of that
    sigfillset(&ours.sa_mask);
    if (::sigaction(Threads::signal(), &ours, &found) == 0 && !is_ours(found)) before = found;
  }
  SignalTaken(const SignalTaken&) = delete;
  SignalTaken& operator=(const SignalTaken&) = delete;
  void give_back() { ::sigaction(Threads::signal(), &before, nullptr); }

 private:
  static bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &take_back;
  }
};

void* wait_for_ever(void*) {
  while (true) ::pause();
}

}  // namespace

CopyThread* Held::thread() { return own; }

void Held::enter() {
  if (own != nullptr) own->held.fetch_add(1);
}

void Held::leave() {
  CopyThread* const thread = own;
  if (thread == nullptr) return;
  if (thread->held.fetch_sub(1) == 1 && thread->must_end.load()) __builtin_longjmp(thread->beginning, 1);
}

int Threads::signal() { return SIGRTMAX - 3; }

void* Threads::begin(void* given) {
  auto& thread = *static_cast<CopyThread*>(given);
  own = &thread;
  thread.number.store(static_cast<pid_t>(::syscall(SYS_gettid)));
  // volatile: it is read after a jump.
  void* volatile result = nullptr;
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, signal());
  if (__builtin_setjmp(thread.beginning) == 0) {
    thread.is_inside.store(true);
    ::pthread_sigmask(SIG_UNBLOCK, &ending,
                      nullptr);  // a thread that starts others may have all signals blocked
    if (!thread.must_end.load()) result = thread.run(thread.argument);
  }
  thread.is_inside.store(false);
  // Whoever ends this thread may send one more: it would be taken for a signal of the program's.
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  own = nullptr;
  thread.is_over.store(1);
  os::futex_wake(thread.is_over);
  return result;
}

int Threads::start(pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  int detached = PTHREAD_CREATE_JOINABLE;
  if (attributes != nullptr) ::pthread_attr_getdetachstate(attributes, &detached);
  const std::lock_guard lock(mutex_);
  forget_ended();
  CopyThread& thread = all_.emplace_back();
  thread.run = run;
  thread.argument = argument;
  pthread_attr_t plain;
  ::pthread_attr_init(&plain);
  const pthread_attr_t* used = attributes == nullptr ? &plain : attributes;
  // Threads are ours to join, so that nothing of one is left when it is known to have ended.
  if (detached == PTHREAD_CREATE_DETACHED)
    ::pthread_attr_setdetachstate(const_cast<pthread_attr_t*>(used), PTHREAD_CREATE_JOINABLE);
  const int result = ::pthread_create(&thread.id, used, &Threads::begin, &thread);
  if (detached == PTHREAD_CREATE_DETACHED)
    ::pthread_attr_setdetachstate(const_cast<pthread_attr_t*>(used), PTHREAD_CREATE_DETACHED);
  ::pthread_attr_destroy(&plain);
  if (result != 0) {
    all_.pop_back();
    return result;
  }
  thread.is_joinable = detached != PTHREAD_CREATE_DETACHED;
  *id = thread.id;
  return 0;
}

/// Forgets threads that nobody will join.
void Threads::forget_ended() {
  std::erase_if(all_, [](CopyThread& thread) {
    if (thread.is_joinable || thread.is_over.load() == 0) return false;
    ::pthread_join(thread.id, nullptr);
    return true;
  });
}

/// Waits for a word of ours, so that whoever waits can be ended.
int Threads::join(pthread_t id, void** result) {
  const std::atomic<std::uint32_t>* is_over = nullptr;
  Held::enter();
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(all_, [id](const CopyThread& thread) {
      return thread.id == id && thread.is_joinable && !thread.is_awaited;
    });
    if (found != all_.end()) {
      found->is_awaited = true;
      is_over = &found->is_over;
    }
  }
  Held::leave();
  if (is_over == nullptr) return ESRCH;
  while (is_over->load() == 0) os::futex_wait(*is_over, 0, std::nullopt);
  Held::enter();
  int joined = 0;
  {
    const std::lock_guard lock(mutex_);
    joined = ::pthread_join(id, result);
    std::erase_if(all_, [id](const CopyThread& thread) { return thread.id == id && thread.is_awaited; });
  }
  Held::leave();
  return joined;
}

int Threads::detach(pthread_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      all_, [id](const CopyThread& thread) { return thread.id == id && thread.is_joinable; });
  if (found == all_.end()) return ESRCH;
  found->is_joinable = false;
  forget_ended();
  return 0;
}

std::size_t Threads::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const CopyThread& thread) { return thread.is_over.load() == 0; }));
}

bool Threads::end_all(Nanoseconds longest) {
  constexpr std::chrono::microseconds look_again(50);
  constexpr int looks_between_signals = 20;
  const std::lock_guard one_at_a_time(throwing);
  SignalTaken signal_taken;
  const auto until = std::chrono::steady_clock::now() + longest;
  for (int looks = 0;; ++looks) {
    bool is_any_left = false;
    {
      const std::lock_guard lock(mutex_);
      for (CopyThread& thread : all_) {
        thread.must_end.store(true);
        if (thread.is_over.load() != 0) continue;
        is_any_left = true;
        const pid_t number = thread.number.load();
        if (number != 0 && looks % looks_between_signals == 0)
          ::syscall(SYS_tgkill, ::getpid(), number, signal());
      }
      if (!is_any_left) {
        for (CopyThread& thread : all_) ::pthread_join(thread.id, nullptr);
        all_.clear();
        signal_taken.give_back();
        return true;
      }
    }
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(look_again);
  }
}

Status Threads::check_whether_allowed() {
  static const bool is_allowed = [] {
    Threads trial;
    pthread_t id{};
    if (trial.start(&id, nullptr, &wait_for_ever, nullptr) != 0) return true;  // none left: no answer
    return trial.end_all(std::chrono::seconds(2));
  }();
  if (is_allowed) return {};
  return fail(ErrorCode::Unsupported, "a thread of this process cannot be ended by a signal",
              "allow tgkill and rt_sigaction in its seccomp filter");
}

}  // namespace firebreak::instance
