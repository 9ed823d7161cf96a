// SPDX-License-Identifier: Apache-2.0
/// An os::Kernel in which the software GPU's device nodes exist: /dev/kmsg with its Xid lines and
/// /dev/nvidia-uvm-tools with the page faults of its processes, and in which address ranges can be made on a
/// process's UVM descriptor. Everything else goes to the kernel that it
/// wraps.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ground/os/kernel.h"
#include "softgpu/devices/kmsg_feed.h"
#include "softgpu/devices/uvm_tools_node.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu {

/// Thread safe. Descriptors of its nodes are closed like any other; they end with the kernel at the latest.
class DeviceKernel final : public os::Kernel {
 public:
  /// `state_directory` is the software GPU's (FIREBREAK_SOFTGPU_DIR); empty: what the environment says.
  explicit DeviceKernel(std::unique_ptr<os::Kernel> wrapped, std::string state_directory = {});
  ~DeviceKernel() override;

  Result<os::Fd> open(const std::string& path, int flags) override;
  Result<std::size_t> read(const os::Fd& fd, std::span<std::byte> into) override;
  Result<std::string> read_link(const std::string& path) override;
  Result<os::DescriptorLinks> read_links(const std::string& directory, int from) override;
  Result<std::vector<std::string>> list_directory(const std::string& path) override;
  Result<std::string> read_file(const std::string& path) override;
  Result<std::string> read_memory_file(const std::string& path) override;
  Result<std::string> read_memory(const std::string& path, std::uint64_t address,
                                  std::size_t size_bytes) override;
  void look_by(std::shared_ptr<os::Looks> looks) override;
  void files_by(std::shared_ptr<os::RootFiles> files) override;
  Status give_file(const os::Fd& file, uid_t user) override;
  Status mark_fifo(const os::Fd& fifo, bool is_marked) override;
  Status ioctl(const os::Fd& fd, unsigned long request, void* argument) override;
  std::string uvm_link_target() const override;
  std::string rm_link_target() const override;
  /// The last descriptor of a resource manager's client closes when no work of it waits any more,
  /// or after a while.
  void close(os::Fd fd) override;
  Result<std::string> gpu_driver() override;
  Result<std::vector<GpuUuid>> gpu_uuids() override;
  Result<pid_t> spawn(const os::SpawnRequest& request) override;
  Result<os::Fd> pidfd_open(pid_t pid) override;
  Result<os::Fd> pidfd_getfd(const os::Fd& pidfd, int remote_number, const std::string& link) override;
  Result<bool> is_same_file(pid_t pid, int remote_number, const os::Fd& fd) override;
  std::vector<Result<os::Fd>> pidfd_getfds(const os::Fd& pidfd,
                                           std::span<const os::DescriptorLink> wanted) override;
  std::vector<Result<bool>> are_same_files(pid_t pid, std::span<const os::FilePair> files) override;
  Status send_signal(const os::Fd& pidfd, int signal) override;
  Result<std::unique_ptr<os::Standstill>> stop_all_but_writers(pid_t pid, const os::Fd& pipe) override;
  Result<std::optional<os::ExitStatus>> try_wait(pid_t pid) override;
  Result<std::vector<std::size_t>> poll(std::span<const int> fds, std::chrono::milliseconds timeout) override;

 private:
  /// The numbers of a process's descriptors of the resource manager.
  std::vector<int> resource_managers_of(pid_t pid);
  /// This tells whether neither the client nor we have another one of the same.
  bool is_last(const os::Fd& fd, pid_t owner);
  Result<std::shared_ptr<SharedGpu>> gpu();
  Result<os::Fd> open_kmsg(int flags);
  Result<os::Fd> open_uvm_tools(int flags);
  /// The node behind a descriptor; null when it is none of ours.
  std::shared_ptr<UvmToolsNode> find_node(const os::Fd& fd);

  std::unique_ptr<os::Kernel> wrapped_;
  std::string state_directory_;
  std::mutex mutex_;
  std::shared_ptr<SharedGpu> gpu_;
  std::vector<std::unique_ptr<KmsgFeed>> feeds_;
  std::map<int, std::shared_ptr<UvmToolsNode>> nodes_;  // by descriptor number
};

}  // namespace firebreak::softgpu
