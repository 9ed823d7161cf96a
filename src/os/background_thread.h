// SPDX-License-Identifier: Apache-2.0
/// Threads of a library inside somebody else's program, which must not notice them.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace firebreak::os {

/// A thread that gets none of the process's signals, and shows by that name (at most 15 characters).
std::thread start_background_thread(const std::string& name, std::function<void()> run);

/// From now on `action` runs in every child of fork(), before fork() returns there.
void run_in_children(void (*action)());

/// `action` runs when the process ends by exit() or by main's return; before what was registered earlier.
void run_at_exit(void (*action)());

}  // namespace firebreak::os
