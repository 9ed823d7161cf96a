// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/shared_gpu.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "ground/base/units.h"
#include "softgpu/environment.h"
#include "softgpu/machine/device_uuid.h"
#include "softgpu/machine/fault_table.h"

namespace firebreak::softgpu {

namespace {

constexpr std::uint32_t page_version = 6;
constexpr std::uint64_t default_memory_mib = 8192;

std::uint64_t total_bytes_from_environment() {
  const char* text = std::getenv(environment::memory_mib);
  const std::uint64_t value = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return (value == 0 ? default_memory_mib : value) * mib;
}

/// The mode of the files in it. A folder of root's that lets others through is everybody's, as a GPU is.
Result<mode_t> make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorCode::Unavailable, "cannot create " + directory + ": " + std::strerror(errno),
                std::string("set ") + environment::directory + " to a folder that can be written");
  }
  struct stat status {};
  const bool is_folder = ::lstat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  const bool is_everybodys = is_folder && status.st_uid == 0 && (status.st_mode & 0001) != 0;
  if (!is_folder || (status.st_mode & 0022) != 0 || (!is_everybodys && status.st_uid != ::geteuid())) {
    return fail(ErrorCode::PermissionDenied, directory + " is not a folder of this user alone",
                std::string("set ") + environment::directory + " to a folder of your own");
  }
  return is_everybodys ? 0666 : 0600;
}

}  // namespace

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// A test's GPU may be smaller than a context.
std::uint64_t SharedGpu::free_bytes() const {
  constexpr std::uint64_t smallest_with_contexts_bytes = std::uint64_t{1} << 30;
  const bool has_contexts = total_bytes_ >= smallest_with_contexts_bytes;
  const std::uint64_t used = used_bytes() + (has_contexts ? processes_.context_bytes() : 0);
  return std::min(used < total_bytes_ ? total_bytes_ - used : 0, processes_.left_of_own_limit());
}

double speed_from_environment() {
  const char* text = std::getenv(environment::speed);
  const double value = text == nullptr ? 1.0 : std::strtod(text, nullptr);
  return value > 0 ? value : 1.0;
}

std::string SharedGpu::directory_from_environment() {
  const char* text = std::getenv(environment::directory);
  if (text != nullptr && *text != '\0') return text;
  return "/tmp/firebreak-softgpu-" + std::to_string(::geteuid());
}

Result<std::shared_ptr<SharedGpu>> SharedGpu::open_own() {
  return open(directory_from_environment(), gpu_from_environment());
}

Result<std::shared_ptr<SharedGpu>> SharedGpu::open(const std::string& directory, std::uint32_t number) {
  const auto mode = make_directory(directory);
  if (!mode) return propagate(mode);
  // Programs of another version have a GPU of their own: nothing that they left stands in the way.
  const std::string path = directory + "/gpu" + std::to_string(number) + "-v" + std::to_string(page_version);
  os::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, *mode));
  if (!fd || ::ftruncate(fd.get(), sizeof(SharedGpuPage)) != 0) {
    return fail(ErrorCode::Unavailable, "cannot open " + path + ": " + std::strerror(errno));
  }
  (void)::fchmod(fd.get(), *mode);  // whatever the umask took; of another's file it is not ours to say
  auto mapping = os::Mapping::of_file(fd.get(), sizeof(SharedGpuPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  std::shared_ptr<SharedGpu> gpu(
      new SharedGpu(std::move(fd), std::move(*mapping), total_bytes_from_environment(), number));
  std::uint32_t version = 0;
  if (!gpu->page_->version.compare_exchange_strong(version, page_version) && version != page_version) {
    return fail(ErrorCode::Protocol, path + " was made by another version", "remove " + directory);
  }
  if (number != 0) {
    auto first = open(directory);
    if (!first) return first;
    gpu->first_ = std::move(*first);
  }
  return gpu;
}

SharedGpu::SharedGpu(os::Fd fd, os::Mapping mapping, std::uint64_t total_bytes, std::uint32_t number)
    : fd_(std::move(fd)),
      mapping_(std::move(mapping)),
      page_(mapping_.as<SharedGpuPage>()),
      total_bytes_(total_bytes),
      number_(number),
      processes_(fd_.get(), page_->processes) {}

Status SharedGpu::enter() {
  return processes_.enter([this] { reset(); });
}

void SharedGpu::reset() {
  processes_.forget_all();
  page_->device_fault_xid.store(0);
  page_->stalled_until_ns.store(0);
}

void SharedGpu::post_kmsg(std::int64_t due_ns, const std::string& text) {
  log_page().kmsg.post(std::max(due_ns, now_ns()), text);
  log_page().kmsg_wake.wake_all();
}

void SharedGpu::stall_until(std::int64_t until_ns) {
  std::int64_t current = page_->stalled_until_ns.load();
  while (current < until_ns && !page_->stalled_until_ns.compare_exchange_weak(current, until_ns)) {
  }
  wake_everybody();
}

void SharedGpu::raise_device_fault(int xid, std::int64_t error_due_ns) {
  if (page_->device_fault_xid.load() != 0) return;
  page_->device_fault_due_ns.store(error_due_ns);
  page_->device_fault_xid.store(static_cast<std::uint32_t>(xid));
  wake_everybody();
}

std::optional<DeviceFault> SharedGpu::device_fault() const {
  const auto xid = static_cast<int>(page_->device_fault_xid.load());
  const DeviceFaultProfile* const profile = find_device_fault(xid);
  if (profile == nullptr) return std::nullopt;
  return DeviceFault{xid, profile->error, page_->device_fault_due_ns.load()};
}

void SharedGpu::post_nvml(const NvmlEvent& event) {
  page_->nvml.post(event);
  page_->nvml_wake.wake_all();
  // Who listens to several GPUs waits at the first.
  if (first_) first_->page_->nvml_wake.wake_all();
}

}  // namespace firebreak::softgpu
