// SPDX-License-Identifier: Apache-2.0
/// A scripted kernel for tests. Descriptors it hands out are real (eventfds, pipes, sockets, memfds), so that
/// they close, poll and sit in an EventLoop like any other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "ground/os/kernel.h"

namespace firebreak::os {

/// How one path answers. What is left empty has a default: open gives a non-blocking eventfd, read reads the
/// descriptor, ioctl is refused as a file would refuse it.
struct FakeDevice {
  std::function<Result<Fd>(int flags)> open;
  std::function<Result<std::size_t>(const Fd& fd, std::span<std::byte> into)> read;
  std::function<Status(const Fd& fd, unsigned long request, void* argument)> ioctl;
  std::function<void(Fd fd)> close;  ///< It closes at once by default.
};

/// Feeds a device whose reads give one whole record each, as /dev/kmsg does.
class FakeRecordFeed {
 public:
  FakeRecordFeed();
  /// The device; it can be opened once.
  FakeDevice device();
  /// The next read gives `record`.
  void push(const std::string& record);
  /// The next read, before any record, fails with `error`; the descriptor becomes readable.
  void push_failure(Error error);
  /// Readers see the end from now on.
  void end();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A signal that somebody sent.
struct SentSignal {
  pid_t pid = 0;
  int signal = 0;
};

/// Thread safe. Handlers run without the kernel's lock.
class FakeKernel final : public Kernel {
 public:
  // Scripting: files, links and devices.
  void set_file(const std::string& path, const std::string& content);
  void set_link(const std::string& path, const std::string& target);
  void set_device(const std::string& path, FakeDevice device);
  /// Every access by `path` fails with `error` from now on.
  void refuse(const std::string& path, Error error);
  /// And no more.
  void permit(const std::string& path);
  void remove(const std::string& path);
  /// Descriptors that the default open of a device gave out become readable until they are read.
  void wake(const std::string& path);
  void set_uvm_link_target(const std::string& target);
  /// The kernel log has a bell from now on, once; it rings while `fd` is readable.
  void set_kernel_log_bell(Fd fd);

  // Scripting: processes.
  /// A process that runs; it has /proc/PID/fd, empty at first.
  void add_process(pid_t pid);
  /// Gives a process a descriptor: what pidfd_getfd duplicates, and what /proc/PID/fd/NUMBER links to. Ioctls
  /// on a duplicate go to the device that is set for `link_target`, if any.
  void give_descriptor(pid_t pid, int number, const std::string& link_target, Fd fd);
  /// And takes it back.
  void take_descriptor(pid_t pid, int number);
  /// The process is a zombie from now on: its pidfds are readable, its descriptors gone; try_wait reaps it.
  void exit_process(pid_t pid, ExitStatus status);
  /// pidfd_getfd fails with this from now on; none: it works again.
  void refuse_pidfd_getfd(std::optional<Error> error);
  /// A spawn does this; the default starts a process that runs until it is told to exit or is killed by
  /// SIGKILL.
  void on_spawn(std::function<Result<pid_t>(const SpawnRequest&)> handler);

  /// Called before each look at what a descriptor is.
  void on_link_read(std::function<void()> handler);

  // The fake notes here what happened.
  std::vector<SpawnRequest> spawned() const;
  std::vector<SentSignal> signals() const;
  /// How often `path` was opened.
  int opened(const std::string& path) const;

  Result<Fd> open(const std::string& path, int flags) override;
  Result<std::size_t> read(const Fd& fd, std::span<std::byte> into) override;
  Result<std::string> read_link(const std::string& path) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  Result<std::string> read_file(const std::string& path) override;
  Status ioctl(const Fd& fd, unsigned long request, void* argument) override;
  void close(Fd fd) override;
  std::string uvm_link_target() const override;
  Result<KernelLogBell> kernel_log_bell() override;
  Result<pid_t> spawn(const SpawnRequest& request) override;
  Result<Fd> pidfd_open(pid_t pid) override;
  Result<Fd> pidfd_getfd(const Fd& pidfd, int remote_number, const std::string& link) override;
  Result<bool> is_same_file(pid_t pid, int remote_number, const Fd& fd) override;
  Status send_signal(const Fd& pidfd, int signal) override;
  Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe) override;
  Result<std::optional<ExitStatus>> try_wait(pid_t pid) override;
  Result<std::vector<std::size_t>> poll(std::span<const int> fds, std::chrono::milliseconds timeout) override;

 private:
  struct Process {
    Fd ended;  ///< an eventfd that is readable once the process has exited
    std::map<int, std::pair<std::string, Fd>> descriptors;
    std::optional<ExitStatus> status;
  };

  Status check(const std::string& path) const;
  Result<Process*> find_running(pid_t pid);
  FakeDevice device_of(const Fd& fd) const;
  void exit_locked(pid_t pid, ExitStatus status);
  std::optional<std::string> status_locked(const std::string& path) const;

  mutable std::mutex mutex_;  ///< guards everything below
  std::map<std::string, std::string> files_;
  std::map<std::string, std::string> links_;
  std::map<std::string, FakeDevice> devices_;
  std::map<std::string, Error> refused_;
  std::map<std::string, int> opened_;
  std::map<std::string, std::vector<Fd>> wakeable_;
  std::map<int, std::string> path_of_fd_;
  std::map<int, pid_t> pid_of_pidfd_;
  std::map<pid_t, Process> processes_;
  std::vector<SpawnRequest> spawned_;
  std::vector<SentSignal> signals_;
  std::optional<Error> getfd_error_;
  std::function<Result<pid_t>(const SpawnRequest&)> spawn_handler_;
  std::function<void()> link_read_handler_;
  std::string uvm_link_target_ = "/dev/nvidia-uvm";
  Fd kernel_log_bell_;
  pid_t next_pid_ = 100'000;
};

}  // namespace firebreak::os
