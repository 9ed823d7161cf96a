// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/shared_gpu.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/units.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu {

namespace {

constexpr std::uint32_t page_version = 1;
constexpr std::uint64_t default_memory_mib = 8192;

/// Field 22 of /proc/PID/stat; 0 when there is no such process. Together with the pid it names a process for
/// ever.
std::uint64_t process_start_time(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return 0;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

std::uint64_t identity_of(pid_t pid) {
  const std::uint64_t start = process_start_time(pid);
  return start == 0 ? 0 : (start << 32) | static_cast<std::uint32_t>(pid);
}

std::uint64_t total_bytes_from_environment() {
  const char* text = std::getenv(environment::memory_mib);
  const std::uint64_t value = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return (value == 0 ? default_memory_mib : value) * mib;
}

Status make_private_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorCode::Unavailable, "cannot create " + directory + ": " + std::strerror(errno),
                std::string("set ") + environment::directory + " to a folder that can be written");
  }
  struct stat status {};
  if (::lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 0022) != 0) {
    return fail(ErrorCode::PermissionDenied, directory + " is not a folder of this user alone",
                std::string("set ") + environment::directory + " to a folder of your own");
  }
  return {};
}

}  // namespace

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

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

Result<std::shared_ptr<SharedGpu>> SharedGpu::open(const std::string& directory) {
  if (Status made = make_private_directory(directory); !made) return propagate(made);
  const std::string path = directory + "/gpu0";
  os::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::ftruncate(fd.get(), sizeof(SharedGpuPage)) != 0) {
    return fail(ErrorCode::Unavailable, "cannot open " + path + ": " + std::strerror(errno));
  }
  auto mapping = os::Mapping::of_file(fd.get(), sizeof(SharedGpuPage), os::Protection::ReadWrite);
  if (!mapping) return propagate(mapping);
  std::shared_ptr<SharedGpu> gpu(new SharedGpu(std::move(*mapping), total_bytes_from_environment()));
  std::uint32_t version = 0;
  if (!gpu->page_->version.compare_exchange_strong(version, page_version) && version != page_version) {
    return fail(ErrorCode::Protocol, path + " was made by another version", "remove " + directory);
  }
  return gpu;
}

SharedGpu::SharedGpu(os::Mapping mapping, std::uint64_t total_bytes)
    : mapping_(std::move(mapping)),
      page_(mapping_.as<SharedGpuPage>()),
      total_bytes_(total_bytes),
      identity_(identity_of(::getpid())) {}

SharedGpu::~SharedGpu() {
  if (SharedGpuPage::ProcessSlot* slot = own_slot_.load(); slot != nullptr) {
    slot->used_bytes.store(0);
    slot->identity.store(0);
  }
}

void SharedGpu::post_kmsg(std::int64_t due_ns, const std::string& text) {
  page_->kmsg.post(due_ns, text);
  page_->kmsg_wake.wake_all();
}

void SharedGpu::stall_until(std::int64_t until_ns) {
  std::int64_t current = page_->stalled_until_ns.load();
  while (current < until_ns && !page_->stalled_until_ns.compare_exchange_weak(current, until_ns)) {
  }
  wake_everybody();
}

SharedGpuPage::ProcessSlot* SharedGpu::own_slot() {
  if (auto* slot = own_slot_.load(); slot != nullptr) return slot;
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (auto& slot : page_->processes) {
      std::uint64_t free_slot = 0;
      if (!slot.identity.compare_exchange_strong(free_slot, identity_)) continue;
      slot.used_bytes.store(0);
      SharedGpuPage::ProcessSlot* none = nullptr;
      if (own_slot_.compare_exchange_strong(none, &slot)) return &slot;
      slot.identity.store(0);
      return none;
    }
    forget_dead_processes();
  }
  return nullptr;
}

bool SharedGpu::take_memory(std::uint64_t size_bytes) {
  SharedGpuPage::ProcessSlot* slot = own_slot();
  if (slot == nullptr || size_bytes > total_bytes_) return false;
  slot->used_bytes.fetch_add(size_bytes);
  if (used_bytes() <= total_bytes_) return true;
  forget_dead_processes();
  if (used_bytes() <= total_bytes_) return true;
  slot->used_bytes.fetch_sub(size_bytes);
  return false;
}

void SharedGpu::give_memory(std::uint64_t size_bytes) {
  if (auto* slot = own_slot_.load(); slot != nullptr) slot->used_bytes.fetch_sub(size_bytes);
}

std::uint64_t SharedGpu::used_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& slot : page_->processes) {
    if (slot.identity.load() != 0) sum += slot.used_bytes.load();
  }
  return sum;
}

void SharedGpu::forget_dead_processes() {
  for (auto& slot : page_->processes) {
    std::uint64_t identity = slot.identity.load();
    if (identity == 0 || identity == identity_) continue;
    if (identity_of(static_cast<pid_t>(identity & 0xffffffff)) == identity) continue;
    slot.identity.compare_exchange_strong(identity, 0);
  }
}

}  // namespace firebreak::softgpu
