// SPDX-License-Identifier: Apache-2.0
/// Makes an accept() wait whose caller has just asked for it not to, for tests.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace firebreak::os {

/// Switches a descriptor's O_NONBLOCK off, over and over.
class FlagFlipper {
 public:
  explicit FlagFlipper(int descriptor)
      : thread_([this, descriptor] {
          while (!is_over_) ::fcntl(descriptor, F_SETFL, 0);
        }) {}
  ~FlagFlipper() {
    is_over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

/// How many threads of this process wait in accept4().
inline int accepts_that_wait() {
  int count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(each.path() / "syscall");
    std::string number;  // "running" of one that does not wait
    if (file >> number && number == std::to_string(SYS_accept4)) ++count;
  }
  return count;
}

}  // namespace firebreak::os
