// SPDX-License-Identifier: Apache-2.0
#include "os/standstill.h"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "os/memory.h"
#include "os/processes.h"
#include "os/self.h"

namespace firebreak::os {
namespace {

std::set<pid_t> threads_of(pid_t pid) {
  std::set<pid_t> threads;
  std::error_code ignored;
  for (const auto& each : std::filesystem::directory_iterator(proc_folder(pid) + "/task", ignored)) {
    const std::string name = each.path().filename();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc{})
      threads.insert(thread);
  }
  return threads;
}

/// proc(5): the number of the system call in which it is, and its arguments, the first of which is a
/// descriptor here.
bool waits_to_write(pid_t pid, pid_t thread, const struct stat& pipe) {
  std::ifstream file(thread_folder(pid, thread) + "/syscall");
  long call = -1;
  std::string argument;
  if (!(file >> call >> argument) || (call != SYS_write && call != SYS_writev)) return false;
  struct stat target {};
  const std::string link = proc_folder(pid) + "/fd/" + std::to_string(std::stoul(argument, nullptr, 16));
  return ::stat(link.c_str(), &target) == 0 && target.st_dev == pipe.st_dev && target.st_ino == pipe.st_ino;
}

/// Who is stopped belongs to the thread that stopped it, and goes on when that ends.
Status stop_threads(pid_t pid, const struct stat& pipe) {
  std::set<pid_t> stopped;
  std::set<pid_t> writing;
  for (bool is_over = false; !is_over;) {  // threads that are not stopped yet may start others
    is_over = true;
    for (const pid_t thread : threads_of(pid)) {
      if (stopped.contains(thread) || writing.contains(thread)) continue;
      is_over = false;
      if (waits_to_write(pid, thread, pipe)) {
        writing.insert(thread);
        continue;
      }
      stopped.insert(thread);
      if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
        if (errno == ESRCH) continue;  // it has ended
        return fail_errno("stop a thread of process " + std::to_string(pid), errno);
      }
      ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    }
  }
  if (!stopped.empty()) return {};
  return fail(ErrorCode::NotFound, "no thread of process " + std::to_string(pid) + " is there to be stopped");
}

class Stopped final : public Standstill {
 public:
  Status begin(pid_t pid, const struct stat& pipe) {
    std::promise<Status> begun;
    auto is_stopped = begun.get_future();
    thread_ = start_background_thread("firebreak-stop", [this, pid, pipe, begun = &begun] {
      const Status done = stop_threads(pid, pipe);
      begun->set_value(done);
      while (done && is_over_.load() == 0) futex_wait(is_over_, 0, std::chrono::hours(1));
    });
    return is_stopped.get();
  }
  ~Stopped() override {
    is_over_.store(1);
    futex_wake(is_over_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<std::uint32_t> is_over_{0};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe) {
  struct stat of_pipe {};
  if (::fstat(pipe.get(), &of_pipe) != 0) return fail_errno("look at a pipe", errno);
  auto stopped = std::make_unique<Stopped>();
  if (const Status begun = stopped->begin(pid, of_pipe); !begun) return propagate(begun);
  return stopped;
}

}  // namespace firebreak::os
