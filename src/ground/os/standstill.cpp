// SPDX-License-Identifier: Apache-2.0
#include "ground/os/standstill.h"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

std::vector<pid_t> threads_of(pid_t pid) {
  RealKernel kernel;
  std::vector<pid_t> threads = other_threads(kernel, pid);
  threads.push_back(pid);
  return threads;
}

enum class Doing {
  SomethingElse,
  Running,  ///< what it does is not shown
  WaitsToWrite,
};

/// proc(5): the number of the system call in which it is, and its arguments, the first of which is a
/// descriptor here. A process whose first thread has ended shows none under its own number.
Doing doing_of(pid_t pid, pid_t thread, const PipeIdentity& pipe) {
  std::ifstream file(thread_folder(pid, thread) + "/syscall");
  std::string call;
  std::string argument;
  if (!(file >> call)) return Doing::SomethingElse;
  if (call == "running") return Doing::Running;
  const long number = std::strtol(call.c_str(), nullptr, 10);
  if (!(file >> argument) || (number != SYS_write && number != SYS_writev)) return Doing::SomethingElse;
  struct stat target {};
  const std::string link = thread_folder(pid, thread) + "/fd/" +
                           std::to_string(static_cast<unsigned>(std::stoul(argument, nullptr, 16)));
  const bool is_it =
      ::stat(link.c_str(), &target) == 0 && target.st_dev == pipe.device && target.st_ino == pipe.inode;
  return is_it ? Doing::WaitsToWrite : Doing::SomethingElse;
}

/// Whoever ends just then cannot be stopped, and need not be.
bool is_ending(pid_t pid, pid_t thread) {
  const auto stat = RealKernel().read_file(thread_folder(pid, thread) + "/stat");
  return !stat || !is_alive(*stat);
}

struct Writers {
  std::set<pid_t> threads;
  bool may_be_more = false;  ///< somebody runs
};

Writers writers_of(pid_t pid, const PipeIdentity& pipe) {
  Writers writers;
  for (const pid_t thread : threads_of(pid)) {
    const Doing doing = doing_of(pid, thread, pipe);
    if (doing == Doing::WaitsToWrite) writers.threads.insert(thread);
    writers.may_be_more |= doing == Doing::Running;
  }
  return writers;
}

/// One who has just been given room runs for a moment, and does not show what he does. Where nobody runs
/// nobody is waited for: who asks us has others to look after.
std::set<pid_t> await_writers(pid_t pid, const PipeIdentity& pipe) {
  constexpr int looks = 50;
  Writers writers = writers_of(pid, pipe);
  for (int i = 0; i < looks && writers.threads.empty() && writers.may_be_more; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    writers = writers_of(pid, pipe);
  }
  return writers.threads;
}

/// The stopped process belongs to the thread that stopped it, and is ended with that thread.
Status stop_threads(pid_t pid, const PipeIdentity& pipe) {
  constexpr int rounds = 100;  // threads that are not stopped yet may start others
  const std::set<pid_t> writing = await_writers(pid, pipe);
  std::set<pid_t> seen;
  bool has_stopped_any = false;
  bool is_over = false;
  for (int i = 0; i < rounds && !is_over; ++i) {
    is_over = true;
    for (const pid_t thread : threads_of(pid)) {
      if (writing.contains(thread) || !seen.insert(thread).second) continue;
      is_over = false;
      if (::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_EXITKILL) != 0) {
        const int error = errno;
        if (error == ESRCH || is_ending(pid, thread)) continue;
        return fail_errno("stop a thread of process " + std::to_string(pid), error);
      }
      ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
      has_stopped_any = true;
    }
  }
  const std::string who = "process " + std::to_string(pid);
  if (!has_stopped_any) return fail(ErrorCode::NotFound, "no thread of " + who + " is there to be stopped");
  if (!is_over) return fail(ErrorCode::ResourceExhausted, who + " starts threads without end");
  return {};
}

}  // namespace

Result<PipeIdentity> pipe_identity(const Fd& pipe) {
  struct stat of_pipe {};
  if (::fstat(pipe.get(), &of_pipe) != 0) return fail_errno("look at a pipe", errno);
  return PipeIdentity{of_pipe.st_dev, of_pipe.st_ino};
}

Status stop_all_but_writers_for_good(pid_t pid, const PipeIdentity& pipe) {
  if (pid <= 1 || pid == ::getpid())
    return fail(ErrorCode::PermissionDenied, "process " + std::to_string(pid) + " is nobody's to stop");
  return stop_threads(pid, pipe);
}

}  // namespace firebreak::os
