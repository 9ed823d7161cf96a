// SPDX-License-Identifier: Apache-2.0
/// Memory that was given to closers (ground/os/closer.h) is closed here, for tests that count descriptors.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace firebreak::os {

inline void await_closers() {
  const auto is_one = [](const std::filesystem::directory_entry& task) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    return file >> name && name == "fb-close";
  };
  while (std::ranges::any_of(std::filesystem::directory_iterator("/proc/self/task"), is_one))
    std::this_thread::yield();
}

}  // namespace firebreak::os
