// SPDX-License-Identifier: Apache-2.0
/// Lets the last kernels of a client that dies run to their end, so that its death harms nobody. When a
/// client's descriptors close under a running kernel, its address space goes and the fault takes its whole
/// MPS domain along; so they are held.
///
/// When the kernels have ended is told by the driver: once the process is gone, its descriptors of the
/// resource manager are closed first, and that waits until the client's channels are idle, at most 2.0 s
/// (measured on an H100, driver 580.159.04: 1.700 s for a kernel with 1.7 s to go, 2.02 s for one with 2.7 s
/// or 80 s). UVM's, which keep the address space, are closed after that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "hold/gpu_descriptors.h"
#include "os/event_loop.h"
#include "os/kernel.h"

namespace firebreak::hold {

struct HolderOptions {
  /// Between two looks for descriptors of a process: first, and at most. What a process needs it opens when
  /// it initialises CUDA.
  Nanoseconds first_look = std::chrono::milliseconds(20);
  Nanoseconds longest_look = std::chrono::seconds(2);
  /// Who closed within this has seen the work end; after it, the driver has given up waiting.
  Nanoseconds idle_wait = std::chrono::milliseconds(1900);
  /// After the death. A kernel that still runs then is endless, as far as anybody waits.
  Nanoseconds longest = std::chrono::seconds(30);
};

/// A process that is gone, or has given the GPU back, and nothing of that is held any more.
struct Release {
  pid_t pid = 0;
  /// Its work has ended, which the driver says; false: nobody knows, and what still ran was ended by force.
  bool work_ended = false;
  Nanoseconds held{};  ///< since its end
};

/// "its last kernel has ended, 310 ms after it"
std::string describe(const Release& release);

struct HolderCallbacks {
  /// A dead process's kernel still runs, and how long it will is not known from here on.
  std::function<void(pid_t)> on_endless;
  std::function<void(const Release&)> on_released;
};

/// What is held, for people.
struct Held {
  pid_t pid = 0;
  bool dead = false;
  bool endless = false;
  Nanoseconds since_death{};
};

/// Lives on the loop's thread; closing is done by threads of its own, since it waits. Its end lets everything
/// go and takes up to 2 s.
class Holder {
 public:
  /// The references outlive it.
  Holder(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, HolderOptions options,
         HolderCallbacks callbacks);
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder();

  /// From now on it is held, as soon as it has something. NotFound: there is no such process.
  Status follow(pid_t pid);
  /// It has just opened the GPU: a look is worth while.
  void look(pid_t pid);
  /// The process has ended. True: it is held, and on_released will tell; false: nothing was held of it.
  bool keep(pid_t pid);
  /// Of a dead one with an endless kernel: nobody is left who would be harmed.
  void let_go(pid_t pid);
  std::vector<Held> held() const;

 private:
  struct Client {
    os::Fd process;
    Duplicates duplicates;
    Nanoseconds pause{};
    os::Watch next_look;
  };
  /// Descriptors that their process has no more, most often because it is dead.
  struct Dead {
    pid_t pid = 0;
    Duplicates duplicates;
    Monotonic died{};
    bool endless = false;
    os::Watch deadline;
    std::thread closing;
  };

  void look_later(pid_t pid, Client& client);
  /// What it had is the dead one's from here on.
  void mourn(pid_t pid, Duplicates duplicates);
  void closed(std::uint64_t id, Nanoseconds took);
  void release(std::uint64_t id, bool work_ended);
  bool is_mourned(pid_t pid) const;

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  HolderOptions options_;
  HolderCallbacks callbacks_;
  std::shared_ptr<Holder*> self_;  ///< what closing threads post to outlives us
  std::map<pid_t, Client> clients_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Dead> dead_;
};

}  // namespace firebreak::hold
