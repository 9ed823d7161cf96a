// SPDX-License-Identifier: Apache-2.0
#include "softgpu/devices/device_kernel.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "ground/os/addresses.h"
#include "ground/os/descriptors.h"
#include "ground/os/self.h"
#include "shared/abi/uvm_tools.h"
#include "softgpu/devices/uvm_va_space.h"
#include "softgpu/machine/device_uuid.h"
#include "softgpu/machine/rm_client.h"
#include "softgpu/machine/self_description.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu {

namespace {

constexpr const char* kmsg_path = "/dev/kmsg";

}  // namespace

DeviceKernel::DeviceKernel(std::unique_ptr<os::Kernel> wrapped, std::string state_directory)
    : wrapped_(std::move(wrapped)), state_directory_(std::move(state_directory)) {}

DeviceKernel::~DeviceKernel() = default;

Result<std::shared_ptr<SharedGpu>> DeviceKernel::gpu() {
  if (gpu_) return gpu_;
  auto opened =
      SharedGpu::open(state_directory_.empty() ? SharedGpu::directory_from_environment() : state_directory_);
  if (!opened) return propagate(opened);
  gpu_ = std::move(*opened);
  return gpu_;
}

Result<os::Fd> DeviceKernel::open(const std::string& path, int flags) {
  if (path == kmsg_path) return open_kmsg(flags);
  if (path == abi::uvm_tools_path) return open_uvm_tools(flags);
  return wrapped_->open(path, flags);
}

Result<os::Fd> DeviceKernel::open_kmsg(int flags) {
  const std::lock_guard lock(mutex_);
  const auto machine = gpu();
  if (!machine) return propagate(machine);
  std::erase_if(feeds_, [](const auto& feed) { return feed->ended(); });
  auto opened = KmsgFeed::open(*machine, flags);
  if (!opened) return propagate(opened);
  feeds_.push_back(std::move(opened->feed));
  return std::move(opened->descriptor);
}

Result<os::Fd> DeviceKernel::open_uvm_tools(int flags) {
  const std::lock_guard lock(mutex_);
  std::erase_if(nodes_, [](const auto& node) { return node.second->ended(); });
  auto opened = UvmToolsNode::open(flags);
  if (!opened) return propagate(opened);
  nodes_.insert_or_assign(opened->descriptor.get(), std::move(opened->node));
  return std::move(opened->descriptor);
}

std::shared_ptr<UvmToolsNode> DeviceKernel::find_node(const os::Fd& fd) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(fd.get());
  return found != nodes_.end() && found->second->is_behind(fd.get()) ? found->second : nullptr;
}

Status DeviceKernel::ioctl(const os::Fd& fd, unsigned long request, void* argument) {
  const std::shared_ptr<UvmToolsNode> node = find_node(fd);
  if (node) return node->ioctl(request, argument);
  return request_uvm_range(fd, request, argument) ? Status() : wrapped_->ioctl(fd, request, argument);
}

std::string DeviceKernel::uvm_link_target() const { return softgpu::uvm_link_target; }

std::string DeviceKernel::rm_link_target() const { return os::memory_file_link(RmClient::memfd_name); }

std::vector<int> DeviceKernel::resource_managers_of(pid_t pid) {
  std::vector<int> numbers;
  // A process that is gone has none.
  static_cast<void>(os::visit_descriptors(*wrapped_, pid, [&](int number, const std::string& target) {
    if (target == rm_link_target()) numbers.push_back(number);
    return true;
  }));
  return numbers;
}

bool DeviceKernel::is_last(const os::Fd& fd, pid_t owner) {
  if (!resource_managers_of(owner).empty()) return false;
  const auto file = os::identity_of(fd.get());
  return std::ranges::none_of(resource_managers_of(os::own_pid()), [&](int number) {
    // This goes by its path: another thread may close it meanwhile.
    const auto other = os::regular_file_at(*wrapped_, "/proc/self/fd/" + std::to_string(number));
    return number != fd.get() && file && other && *file == *other;
  });
}

void DeviceKernel::close(os::Fd fd) {
  const auto client = RmClient::from(fd.get());
  if (!client || !is_last(fd, client->owner_pid())) return;
  const auto until = std::chrono::steady_clock::now() + rm_idle_wait;
  while (client->has_waiting_work() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<std::string> DeviceKernel::gpu_driver() { return std::string(driver_name()); }

Result<std::vector<os::Kernel::GpuUuid>> DeviceKernel::gpu_uuids() {
  std::vector<GpuUuid> uuids;
  for (std::uint32_t gpu = 0; gpu < gpu_count_from_environment(); ++gpu) uuids.push_back(device_uuid_of(gpu));
  return uuids;
}

Result<std::size_t> DeviceKernel::read(const os::Fd& fd, std::span<std::byte> into) {
  if (const std::shared_ptr<UvmToolsNode> node = find_node(fd)) node->catch_up();
  return wrapped_->read(fd, into);
}
Result<std::string> DeviceKernel::read_link(const std::string& path) { return wrapped_->read_link(path); }
Result<os::DescriptorLinks> DeviceKernel::read_links(const std::string& directory, int from) {
  return wrapped_->read_links(directory, from);
}
Result<std::vector<std::string>> DeviceKernel::list_directory(const std::string& path) {
  return wrapped_->list_directory(path);
}
Result<std::string> DeviceKernel::read_file(const std::string& path) { return wrapped_->read_file(path); }
Result<std::string> DeviceKernel::read_memory_file(const std::string& path) {
  return wrapped_->read_memory_file(path);
}
Result<std::string> DeviceKernel::read_memory(const std::string& path, std::uint64_t address,
                                              std::size_t size_bytes) {
  return wrapped_->read_memory(path, address, size_bytes);
}
void DeviceKernel::look_by(std::shared_ptr<os::Looks> looks) { wrapped_->look_by(std::move(looks)); }
void DeviceKernel::files_by(std::shared_ptr<os::RootFiles> files) { wrapped_->files_by(std::move(files)); }
Status DeviceKernel::give_file(const os::Fd& file, uid_t user) { return wrapped_->give_file(file, user); }
Status DeviceKernel::mark_fifo(const os::Fd& fifo, bool is_marked) {
  return wrapped_->mark_fifo(fifo, is_marked);
}
Result<pid_t> DeviceKernel::spawn(const os::SpawnRequest& request) { return wrapped_->spawn(request); }
Result<os::Fd> DeviceKernel::pidfd_open(pid_t pid) { return wrapped_->pidfd_open(pid); }
Result<os::Fd> DeviceKernel::pidfd_getfd(const os::Fd& pidfd, int remote_number, const std::string& link) {
  return wrapped_->pidfd_getfd(pidfd, remote_number, link);
}
Result<bool> DeviceKernel::is_same_file(pid_t pid, int remote_number, const os::Fd& fd) {
  return wrapped_->is_same_file(pid, remote_number, fd);
}
std::vector<Result<os::Fd>> DeviceKernel::pidfd_getfds(const os::Fd& pidfd,
                                                       std::span<const os::DescriptorLink> wanted) {
  return wrapped_->pidfd_getfds(pidfd, wanted);
}
std::vector<Result<bool>> DeviceKernel::are_same_files(pid_t pid, std::span<const os::FilePair> files) {
  return wrapped_->are_same_files(pid, files);
}
Status DeviceKernel::send_signal(const os::Fd& pidfd, int signal) {
  return wrapped_->send_signal(pidfd, signal);
}

Result<std::unique_ptr<os::Standstill>> DeviceKernel::stop_all_but_writers(pid_t pid, const os::Fd& pipe) {
  return wrapped_->stop_all_but_writers(pid, pipe);
}
Result<std::optional<os::ExitStatus>> DeviceKernel::try_wait(pid_t pid) { return wrapped_->try_wait(pid); }
Result<std::vector<std::size_t>> DeviceKernel::poll(std::span<const int> fds,
                                                    std::chrono::milliseconds timeout) {
  return wrapped_->poll(fds, timeout);
}

}  // namespace firebreak::softgpu
