// SPDX-License-Identifier: Apache-2.0
/// Linux itself behind os::Kernel.
#pragma once

#include "ground/os/kernel.h"
#include "ground/os/looks.h"

namespace firebreak::os {

// --- real kernel

/// This machine's Linux kernel and NVIDIA driver. Its only state is who looks and gives for it, and a bell;
/// other kernels may derive from it to stand in for single device nodes.
class RealKernel : public Kernel {
 public:
  /// Always close-on-exec.
  Result<Fd> open(const std::string& path, int flags) override;
  Result<std::size_t> read(const Fd& fd, std::span<std::byte> into) override;
  Result<std::string> read_link(const std::string& path) override;
  Result<DescriptorLinks> read_links(const std::string& directory, int from) override {
    return looks_->read_links(directory, from);
  }
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  Result<std::string> read_file(const std::string& path) override;
  Result<std::string> read_memory_file(const std::string& path) override { return looks_->read_file(path); }
  Result<std::string> read_memory(const std::string& path, std::uint64_t address,
                                  std::size_t size_bytes) override {
    return looks_->read_memory(path, address, size_bytes);
  }
  /// Called before another thread uses it.
  void look_by(std::shared_ptr<Looks> looks) override { looks_ = std::move(looks); }
  Status ioctl(const Fd& fd, unsigned long request, void* argument) override;
  Status give_file(const Fd& file, uid_t user) override;
  Status mark_fifo(const Fd& fifo, bool is_marked) override;
  void files_by(std::shared_ptr<RootFiles> files) override { root_files_ = std::move(files); }
  Result<KernelLogBell> kernel_log_bell() override;
  /// Called before another thread uses it.
  void use_bell(Result<KernelLogBell> bell) override { bell_.emplace(std::move(bell)); }

  /// A child that is to die with its parent dies with the *thread* that called this: call it from one that
  /// stays.
  Result<pid_t> spawn(const SpawnRequest& request) override;
  Result<Fd> pidfd_open(pid_t pid) override;
  Result<Fd> pidfd_getfd(const Fd& pidfd, int remote_number, const std::string& link) override {
    return looks_->duplicate(pidfd, remote_number, link);
  }
  Result<bool> is_same_file(pid_t pid, int remote_number, const Fd& fd) override;
  std::vector<Result<Fd>> pidfd_getfds(const Fd& pidfd, std::span<const DescriptorLink> wanted) override {
    return looks_->duplicate_all(pidfd, wanted);
  }
  std::vector<Result<bool>> are_same_files(pid_t pid, std::span<const FilePair> files) override;
  Status send_signal(const Fd& pidfd, int signal) override;
  Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe) override;
  Result<std::optional<ExitStatus>> try_wait(pid_t pid) override;

  Result<std::vector<std::size_t>> poll(std::span<const int> fds, std::chrono::milliseconds timeout) override;

 private:
  std::shared_ptr<Looks> looks_ = direct_looks();
  std::shared_ptr<RootFiles> root_files_;  ///< empty: we do that ourselves
  std::optional<Result<KernelLogBell>> bell_;
};

// --- spawn
// Starting a process as a SpawnRequest says; what RealKernel::spawn does.

/// NotFound when there is no such program; any later failure before the program runs is an error as well.
Result<pid_t> spawn_process(const SpawnRequest& request);

/// A process that exists and does not run its program yet. It ends when this goes before it has begun.
struct HeldStart {
  pid_t pid = 0;
  Fd gate;    ///< closed without a word, the process ends
  Fd report;  ///< says why the program could not run
  std::string program;
};
/// The same, but the program waits for let_begin().
Result<HeldStart> spawn_held(const SpawnRequest& request);
/// Returns when the program runs, or why it does not: then the process has been reaped. One that was killed
/// meanwhile is no error: it has ended as others do.
Status let_begin(HeldStart held);

}  // namespace firebreak::os
