// SPDX-License-Identifier: Apache-2.0
#include "ground/os/processor_wait.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "ground/os/processes.h"

namespace firebreak::os {
namespace {

Nanoseconds take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);
  return Nanoseconds(number);
}

std::vector<pid_t> all_threads(Kernel& kernel, pid_t pid) {
  std::vector<pid_t> threads = other_threads(kernel, pid);
  threads.push_back(pid);
  return threads;
}

std::string task_folder(pid_t pid, pid_t thread) {
  return proc_folder(pid) + "/task/" + std::to_string(thread);
}

}  // namespace

/// "ran waited turns": Linux's Documentation/scheduler/sched-stats.rst.
ProcessorWait::Thread ProcessorWait::look(Kernel& kernel, pid_t pid, pid_t thread) {
  Thread seen;
  const auto said = kernel.read_file(task_folder(pid, thread) + "/schedstat");
  if (!said) return seen;
  std::string_view text = *said;
  seen.ran = take_number(text);
  seen.waited = take_number(text);
  seen.is_known = true;
  return seen;
}

ProcessorWait::ProcessorWait(Kernel& kernel, pid_t pid, Monotonic now) : pid_(pid), looked_(now) {
  for (const pid_t thread : all_threads(kernel, pid)) {
    Thread seen = look(kernel, pid, thread);
    seen.before = seen.waited;
    threads_[thread] = seen;
  }
}

/// Of a wait that goes on Linux says nothing yet: such a thread is ready to run, and nothing has changed.
Nanoseconds ProcessorWait::until(Kernel& kernel, Monotonic now) {
  for (const pid_t thread : all_threads(kernel, pid_)) {
    Thread& known = threads_[thread];
    const Thread seen = look(kernel, pid_, thread);
    if (!seen.is_known) continue;
    const bool is_unchanged = known.is_known && seen.ran == known.ran && seen.waited == known.waited;
    const bool waits = is_unchanged && state_in(kernel, task_folder(pid_, thread)) == 'R';
    known.ran = seen.ran;
    known.waited = seen.waited;
    known.is_known = true;
    known.goes_on = waits ? known.goes_on + (now - looked_) : Nanoseconds(0);
    longest_ = std::max(longest_, seen.waited - known.before + known.goes_on);
  }
  looked_ = now;
  return longest_;
}

}  // namespace firebreak::os
