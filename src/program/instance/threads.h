// SPDX-License-Identifier: Apache-2.0
/// The threads that one copy of a driver has started, which can be ended at any moment: a signal takes each
/// back to where it began, from where it returns to the C library as any thread does. So the C library gets
/// its stack and all else of it again, and no code of the driver's runs once more.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>

#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::instance {

/// One thread of a copy's.
struct CopyThread {
  void* (*run)(void*) = nullptr;
  void* argument = nullptr;
  pthread_t id{};
  std::atomic<pid_t> number{0};        ///< number in Linux; 0: it has not begun
  std::atomic<std::uint32_t> held{0};  ///< its own count; not 0: it is inside what must not be left half done
  std::atomic<bool> must_end{false};
  std::atomic<bool> is_inside{false};     ///< true between its beginning and its end: it can be taken back
  std::atomic<std::uint32_t> is_over{0};  ///< the thread runs no more code but the C library's last
  bool is_joinable = true;                ///< guarded by the mutex of its Threads, as the next
  bool is_awaited = false;                ///< somebody joins it
  /// Place to which the thread is taken back. It is the compiler's jump and not siglongjmp(): that one runs
  /// the C library's handlers of cancellation, of which the one of pthread_cond_wait() waits for the mutex,
  /// which another ended thread may have for good.
  void* beginning[5];
};

/// Keeps the calling thread from being ended while this lives, if it is one of a copy's: it holds something
/// of the process's, as a lock of the C library's. A thread that was to be ended meanwhile is ended by
/// leave(), which does not return then.
class Held {
 public:
  static void enter();
  static void leave();
  /// The thread of a copy that calls; null: it is none.
  static CopyThread* thread();
};

/// Thread safe.
class Threads {
 public:
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// These do what pthread_create, pthread_join and pthread_detach do.
  int start(pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*), void* argument);
  int join(pthread_t id, void** result);
  int detach(pthread_t id);

  std::size_t count() const;
  /// Ends all of them; the calling thread is none. False: some are still there when that time is over, since
  /// they hold something, or are inside the program's code; they end as soon as they let go. May be called
  /// again.
  bool end_all(Nanoseconds longest);

  /// Checks that a thread of this process can be ended so; asked once, by ending one. Unsupported: Linux
  /// forbids a part of it.
  static Status check_whether_allowed();
  /// The signal that ends a thread. The program may use it as well.
  static int signal();

 private:
  static void* begin(void* thread);
  void forget_ended();

  mutable std::mutex mutex_;  ///< guards what follows
  std::list<CopyThread> all_;
};

}  // namespace firebreak::instance
