// SPDX-License-Identifier: Apache-2.0
#include "ground/os/memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "ground/os/descriptors.h"
#include "ground/os/fd.h"

namespace firebreak::os {

// --- memory

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

namespace {

/// A file that grows beyond the process's limit ends the process (SIGXFSZ).
Status may_have(std::size_t size_bytes) {
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || size_bytes <= most.rlim_cur) return {};
  return fail(ErrorCode::ResourceExhausted,
              "a memory file of " + std::to_string(size_bytes) + " bytes is larger than files may be here",
              "raise `ulimit -f`");
}

}  // namespace

Result<Fd> create_memory_file(const std::string& name, std::size_t size_bytes, MemorySeal seal) {
  if (const Status may = may_have(size_bytes); !may) return propagate(may);
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno("create a memory file", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    return fail_errno("give a memory file " + std::to_string(size_bytes) + " bytes", errno);
  }
  const int seals = seal == MemorySeal::Size ? F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL : 0;
  if (seals != 0 && ::fcntl(fd.get(), F_ADD_SEALS, seals) != 0)
    return fail_errno("seal a memory file", errno);
  return fd;
}

std::string memory_file_link(const std::string& name) { return "/memfd:" + name + " (deleted)"; }

Result<Fd> memory_file_with(std::string_view content) {
  if (const Status may = may_have(content.size()); !may) return propagate(may);
  Result<Fd> fd = create_memory_file("content", 0, MemorySeal::None);
  if (!fd) return fd;
  const ssize_t size = ::pwrite(fd->get(), content.data(), content.size(), 0);
  if (size != static_cast<ssize_t>(content.size()))
    return fail_errno("fill a memory file", size < 0 ? errno : ENOSPC);
  return fd;
}

namespace {

Result<Fd> reopen_with(int fd, int flags) {
  Fd again(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags | O_CLOEXEC));
  if (!again) return fail_errno("open a memory file again", errno);
  return again;
}

/// The whole file.
struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = static_cast<off_t>(first_mark);
  return lock;
}

}  // namespace

Result<Fd> reopen_for_writing_only(int fd) { return reopen_with(fd, O_WRONLY); }

Result<Fd> reopen(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return fail_errno("ask for a descriptor's flags", errno);
  return reopen_with(fd, flags & O_ACCMODE);
}

Status lock_while_open(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd, F_OFD_SETLK, &lock) != 0) return fail_errno("lock a file", errno);
  return {};
}

Result<bool> is_locked_elsewhere(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return fail_errno("ask for a file's lock", errno);
  return lock.l_type != F_UNLCK;
}

Result<std::string> content_of(int fd) {
  const Result<std::size_t> size = file_size(fd);
  if (!size) return propagate(size);
  std::string content(*size, '\0');
  const ssize_t got = ::pread(fd, content.data(), content.size(), 0);
  if (got < 0) return fail_errno("read a file", errno);
  content.resize(static_cast<std::size_t>(got));
  return content;
}

Result<std::string> content_at(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return fail_errno("open " + path, errno);
  return content_of(file.get());
}

Result<std::string> content_of_proc(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("open " + path, errno);
  std::string content;
  std::array<char, 16384> part;
  while (true) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read " + path, errno);
    if (got == 0) return content;
    content.append(part.data(), static_cast<std::size_t>(got));
  }
}

Result<std::size_t> file_size(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return fail_errno("ask for a file's size", errno);
  return static_cast<std::size_t>(info.st_size);
}

bool has_fixed_size(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

bool has_fixed_size(int fd, std::size_t size_bytes) {
  const auto its = file_size(fd);
  return its && *its == size_bytes && has_fixed_size(fd);
}

Result<Mapping> Mapping::of_file(int fd, std::size_t size_bytes, Protection protection, std::size_t offset) {
  const int flags = protection == Protection::Read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* address = ::mmap(nullptr, size_bytes, flags, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) return fail_errno("map " + std::to_string(size_bytes) + " bytes", errno);
  return Mapping(address, size_bytes);
}

Result<Mapping> Mapping::anonymous(std::size_t size_bytes) {
  void* address = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return fail_errno("map " + std::to_string(size_bytes) + " bytes", errno);
  return Mapping(address, size_bytes);
}

Result<Mapping> Mapping::placeholder(std::uint64_t address, std::size_t size_bytes) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* const got = ::mmap(wanted, size_bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return fail_errno("keep addresses free", errno);
  Mapping mapping(got, size_bytes);
  if (got != wanted) return fail(ErrorCode::Unavailable, "these addresses are not to be had");
  return mapping;
}

Status Mapping::forbid_tail(std::size_t size_bytes) {
  if (size_bytes > size_bytes_)
    return fail(ErrorCode::InvalidArgument, "the mapping is smaller than its tail");
  std::byte* tail = static_cast<std::byte*>(address_) + (size_bytes_ - size_bytes);
  if (::mprotect(tail, size_bytes, PROT_NONE) == 0) return {};
  return fail_errno("forbid the end of a mapping", errno);
}

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    address_ = std::exchange(other.address_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

void Mapping::reset() {
  if (address_ != nullptr) ::munmap(std::exchange(address_, nullptr), std::exchange(size_bytes_, 0));
}

// --- futex

void* raw_mmap(void* address, std::size_t size_bytes, int protection, int flags, int fd,
               std::int64_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size_bytes, protection, flags, fd, offset));
}

int raw_munmap(void* address, std::size_t size_bytes) {
  return static_cast<int>(::syscall(SYS_munmap, address, size_bytes));
}

int raw_bind(int fd, const void* name, std::uint32_t size_bytes) {
  return static_cast<int>(::syscall(SYS_bind, fd, name, size_bytes));
}

bool copy_if_readable(void* to, const void* from, std::size_t size_bytes) {
  const iovec into{to, size_bytes};
  const iovec of{const_cast<void*>(from), size_bytes};
  return ::process_vm_readv(::getpid(), &into, 1, &of, 1, 0) == static_cast<ssize_t>(size_bytes);
}

bool prepare_process_barrier() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void pass_process_barrier() { (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::optional<Nanoseconds> timeout) {
  timespec limit{};
  if (timeout) {
    const auto ns = std::max<std::int64_t>(timeout->count(), 0);
    limit.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  }
  const long result =
      ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, timeout ? &limit : nullptr, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

int futex_wake(std::atomic<std::uint32_t>& word, int count) {
  return static_cast<int>(::syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0));
}

}  // namespace firebreak::os
