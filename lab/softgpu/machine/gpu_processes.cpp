// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/gpu_processes.h"

#include <fcntl.h>

#include <cerrno>

#include "ground/os/fd.h"
#include "ground/os/self.h"

namespace firebreak::softgpu {

namespace {

// Bytes of the file as names of locks; what the file holds there does not matter.
constexpr off_t entry_byte = GpuProcessTable::capacity;

struct flock byte_lock(short type, off_t begin, off_t count) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = count;
  return lock;
}

/// True when another process (or another object of this one) holds a lock in the range.
bool others_hold(int fd, off_t begin, off_t count) {
  struct flock lock = byte_lock(F_WRLCK, begin, count);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace

Status GpuProcesses::lock_entry() {
  struct flock lock = byte_lock(F_WRLCK, entry_byte, 1);
  while (::fcntl(fd_, F_OFD_SETLKW, &lock) != 0) {
    if (errno != EINTR) return os::fail_errno("enter the software GPU", errno);
  }
  return {};
}

void GpuProcesses::unlock_entry() {
  struct flock lock = byte_lock(F_UNLCK, entry_byte, 1);
  ::fcntl(fd_, F_OFD_SETLK, &lock);
}

bool GpuProcesses::somebody_else() const { return others_hold(fd_, 0, GpuProcessTable::capacity); }

bool GpuProcesses::is_there(std::size_t place) const {
  return place == own_place_.load() || others_hold(fd_, static_cast<off_t>(place), 1);
}

Status GpuProcesses::take_place() {
  if (has_place()) return {};
  for (std::size_t place = 0; place < GpuProcessTable::capacity; ++place) {
    struct flock lock = byte_lock(F_WRLCK, static_cast<off_t>(place), 1);
    if (::fcntl(fd_, F_OFD_SETLK, &lock) != 0) continue;
    table_.used_bytes[place].store(0);
    table_.context_bytes[place].store(0);
    table_.pid[place].store(os::own_pid());
    own_place_.store(place);
    return {};
  }
  return fail(ErrorCode::Unavailable, "too many processes have the software GPU open");
}

bool GpuProcesses::take_memory(std::uint64_t size_bytes, std::uint64_t limit_bytes) {
  auto* const own = own_of(table_.used_bytes);
  if (own == nullptr || size_bytes > limit_bytes) return false;
  const std::uint64_t own_bytes = own->fetch_add(size_bytes) + size_bytes;
  if (own_bytes <= own_limit_.load() && used_bytes() <= limit_bytes) return true;
  own->fetch_sub(size_bytes);
  return false;
}

std::uint64_t GpuProcesses::left_of_own_limit() const {
  const auto* const own = own_of(table_.used_bytes);
  const std::uint64_t used = own == nullptr ? 0 : own->load();
  const std::uint64_t limit = own_limit_.load();
  return used < limit ? limit - used : 0;
}

void GpuProcesses::give_memory(std::uint64_t size_bytes) {
  if (auto* const own = own_of(table_.used_bytes); own != nullptr) own->fetch_sub(size_bytes);
}

void GpuProcesses::count_context_memory(std::int64_t change_bytes) {
  auto* const own = own_of(table_.context_bytes);
  if (own != nullptr) own->fetch_add(static_cast<std::uint64_t>(change_bytes));
}

std::uint64_t GpuProcesses::sum_of(const Bytes& each_bytes) const {
  std::uint64_t sum = 0;
  for (std::size_t place = 0; place < GpuProcessTable::capacity; ++place) {
    const std::uint64_t bytes = each_bytes[place].load();
    if (bytes != 0 && is_there(place)) sum += bytes;
  }
  return sum;
}

std::uint64_t GpuProcesses::used_bytes() const { return sum_of(table_.used_bytes); }

std::uint64_t GpuProcesses::context_bytes() const { return sum_of(table_.context_bytes); }

std::vector<GpuProcess> GpuProcesses::list() const {
  std::vector<GpuProcess> all;
  for (std::size_t place = 0; place < GpuProcessTable::capacity; ++place) {
    const pid_t pid = table_.pid[place].load();
    if (pid == 0 || !is_there(place)) continue;
    all.push_back({pid, table_.used_bytes[place].load() + table_.context_bytes[place].load()});
  }
  for (const auto& kept : table_.kept) {
    if (kept.load() != 0) all.push_back({kept.load(), 0});
  }
  return all;
}

void GpuProcesses::keep(pid_t pid) {
  for (auto& kept : table_.kept) {
    std::int32_t nobody = 0;
    if (kept.compare_exchange_strong(nobody, pid)) return;
  }
}

void GpuProcesses::forget_all() {
  for (auto& kept : table_.kept) kept.store(0);
}

void GpuProcesses::forget(pid_t pid) {
  for (auto& kept : table_.kept) {
    std::int32_t it = pid;
    kept.compare_exchange_strong(it, 0);
  }
}

}  // namespace firebreak::softgpu
