// SPDX-License-Identifier: Apache-2.0
#include "ground/os/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "ground/os/fd.h"
#include "ground/os/processes.h"

namespace firebreak::os {

// --- process descriptors

namespace {

std::string descriptor_folder(pid_t pid, pid_t thread) { return thread_folder(pid, thread) + "/fd"; }

/// Empty: it cannot be said. Opened for nothing but to be asked: for more it may not be ours to open.
std::optional<bool> shows_any(Kernel& kernel, const std::string& directory) {
  const auto folder = kernel.open(directory, O_PATH | O_DIRECTORY);
  struct stat info {};
  // Linux says how many since 6.2.
  if (folder && ::fstat(folder->get(), &info) == 0 && info.st_size > 0) return true;
  const auto names = kernel.list_directory(directory);
  return names ? std::optional(!names->empty()) : std::nullopt;
}

/// True when the directory was that of a thread that lives: a thread that has ended shows nothing.
Result<bool> visit_living(Kernel& kernel, const std::string& directory, const DescriptorVisitor& visit) {
  bool is_any = false;
  bool has_missed_any = false;
  int from = 0;
  do {
    const auto links = kernel.read_links(directory, from);
    if (!links) return propagate(links);
    for (const DescriptorLink& link : links->all) {
      if (!visit(link.number, link.target)) return true;
    }
    is_any |= !links->is_nothing_there();
    has_missed_any |= links->has_missed_any;
    from = links->next;
  } while (from != 0);
  // The thread may have ended meanwhile.
  return is_any && (!has_missed_any || shows_any(kernel, directory).value_or(false));
}

std::optional<std::size_t> count_in(Kernel& kernel, const std::string& directory) {
  const auto folder = kernel.open(directory, O_PATH | O_DIRECTORY);
  struct stat info {};
  if (!folder || ::fstat(folder->get(), &info) != 0 || info.st_size <= 0) return std::nullopt;
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

Status visit_descriptors(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit) {
  const auto lives = visit_living(kernel, descriptor_folder(pid, pid), visit);
  if (!lives) return propagate(lives);
  if (*lives) return {};
  for (const pid_t thread : other_threads(kernel, pid)) {
    if (visit_living(kernel, descriptor_folder(pid, thread), visit).value_or(false)) return {};
  }
  return {};
}

Result<bool> visit_some_descriptors(Kernel& kernel, pid_t pid, int& from, const DescriptorVisitor& visit) {
  const int since = std::exchange(from, 0);
  auto links = kernel.read_links(descriptor_folder(pid, pid), since);
  if (links && links->all.empty())
    links = kernel.read_links(descriptor_folder(pid, living_thread(kernel, pid)), since);
  if (!links) return propagate(links);
  // Its names were there, and then it was not: the thread has ended meanwhile.
  if (since == 0 && links->all.empty() && links->has_missed_any)
    return fail(ErrorCode::Timeout, "the descriptors of a process went away while they were looked at");
  for (const DescriptorLink& link : links->all) {
    if (!visit(link.number, link.target)) return true;
  }
  from = links->next;
  return from == 0;
}

bool first_thread_shows_descriptors(Kernel& kernel, pid_t pid) {
  return shows_any(kernel, descriptor_folder(pid, pid)).value_or(false);
}

Result<bool> visit_first_descriptors(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit) {
  DescriptorScan scan;
  for (;;) {
    const auto all = scan.visit_next(kernel, pid, visit);
    if (!scan.is_under_way()) return all;
  }
}

Result<bool> DescriptorScan::visit_next(Kernel& kernel, pid_t pid, const DescriptorVisitor& visit) {
  if (from_ == 0) looks_ = seen_ = 0;
  const auto all = visit_some_descriptors(kernel, pid, from_, [&](int number, const std::string& target) {
    ++seen_;
    return visit(number, target);
  });
  constexpr std::size_t most_looks = most_descriptors_of_a_process / fewest_descriptors_in_a_look;
  // A link that cannot be read is not shown, but its look counts.
  if (!all || ++looks_ == most_looks || seen_ >= most_descriptors_of_a_process) from_ = 0;
  return all;
}

Status visit_descriptors_in(Kernel& kernel, const std::string& directory, const DescriptorVisitor& visit) {
  const auto visited = visit_living(kernel, directory, visit);
  return visited ? Status() : propagate(visited);
}

std::optional<std::size_t> count_descriptors(Kernel& kernel, pid_t pid) {
  if (const auto count = count_in(kernel, descriptor_folder(pid, pid))) return count;
  return count_in(kernel, descriptor_folder(pid, living_thread(kernel, pid)));
}

void DescriptorCount::note(Kernel& kernel, pid_t pid) {
  count_ = count_descriptors(kernel, pid);
  glances_ = 0;
}

bool DescriptorCount::is_as_noted(Kernel& kernel, pid_t pid, std::uint32_t most) {
  return count_ && glances_++ < most && count_descriptors(kernel, pid) == count_;
}

// --- what a descriptor is

namespace {

using Facts = struct statx;

/// The call goes by number, because the oldest supported C library has no function of that name.
bool look_up(int folder, const char* path, int flags, Facts& facts) {
  constexpr int asks_nobody = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
  return ::syscall(SYS_statx, folder, path, flags | asks_nobody, STATX_TYPE | STATX_MODE, &facts) == 0;
}

bool look_up(int fd, Facts& facts) { return look_up(fd, "", AT_EMPTY_PATH, facts); }

using DeviceNumber = std::pair<std::uint32_t, std::uint32_t>;

DeviceNumber file_system_of(const Facts& facts) { return {facts.stx_dev_major, facts.stx_dev_minor}; }

/// Returns the device number of all memory files of this kernel: nobody can mount it.
std::optional<DeviceNumber> memory_files() {
  const Fd one(static_cast<int>(::syscall(SYS_memfd_create, "kind", MFD_CLOEXEC)));
  Facts facts{};
  if (!one || !look_up(one.get(), facts)) return std::nullopt;
  return file_system_of(facts);
}

bool is_memory_file(const Facts& facts) {
  static const std::optional<DeviceNumber> all = memory_files();
  return S_ISREG(facts.stx_mode) && all && file_system_of(facts) == *all;
}

bool is_called_rightly(const Facts& facts, const std::string& link) {
  if (link.starts_with("/memfd:")) return is_memory_file(facts);
  if (link.starts_with("socket:")) return S_ISSOCK(facts.stx_mode);
  Facts node{};
  if (!S_ISCHR(facts.stx_mode) || !look_up(AT_FDCWD, link.c_str(), 0, node)) return false;
  return S_ISCHR(node.stx_mode) && node.stx_rdev_major == facts.stx_rdev_major &&
         node.stx_rdev_minor == facts.stx_rdev_minor;
}

tl::unexpected<Error> only_called(const std::string& link) {
  return fail(ErrorCode::NotFound, "a descriptor is called " + link + ", and is something else");
}

}  // namespace

DescriptorKind kind_of(int fd) {
  Facts facts{};
  if (!look_up(fd, facts)) return DescriptorKind::Other;
  if (is_memory_file(facts)) return DescriptorKind::MemoryFile;
  if (S_ISCHR(facts.stx_mode)) return DescriptorKind::Device;
  return S_ISSOCK(facts.stx_mode) ? DescriptorKind::Socket : DescriptorKind::Other;
}

bool is_what_it_is_called(int fd, const std::string& link) {
  Facts facts{};
  return look_up(fd, facts) && is_called_rightly(facts, link);
}

Status check_what_it_is_called(const std::string& path, const std::string& link) {
  Facts facts{};
  if (!look_up(AT_FDCWD, path.c_str(), 0, facts)) return fail_errno("look at " + path, errno);
  return is_called_rightly(facts, link) ? Status() : only_called(link);
}

Result<Fd> open_what_it_is_called(Kernel& kernel, const std::string& path, const std::string& link) {
  // The call opens nothing yet, but from here on the path can lead nowhere else.
  const auto found = kernel.open(path, O_PATH);
  if (!found) return propagate(found);
  if (!is_what_it_is_called(found->get(), link)) return only_called(link);
  return kernel.open("/proc/self/fd/" + std::to_string(found->get()), O_RDONLY);
}

// --- descriptor limit

namespace {

/// The limit is the whole process's, and so is what it was.
std::optional<DescriptorLimit>& limit_at_start() {
  static std::optional<DescriptorLimit> limit;
  return limit;
}

Status set_limit(const DescriptorLimit& limit) {
  const rlimit wanted{limit.soft, limit.hard};
  if (::setrlimit(RLIMIT_NOFILE, &wanted) != 0) return fail_errno("raise the limit of descriptors", errno);
  return {};
}

/// Quickly, and only where the highest numbers are free: the lowest are given first. False: they have to be
/// counted.
bool is_free_from(std::uint64_t number) {
  const Fd some(::open("/", O_PATH | O_CLOEXEC));
  const Fd that(some ? ::fcntl(some.get(), F_DUPFD_CLOEXEC, static_cast<int>(number)) : -1);
  return that && static_cast<std::uint64_t>(that.get()) == number;
}

std::uint64_t most_of_any_process() {
  std::uint64_t most = 0;
  std::ifstream("/proc/sys/fs/nr_open") >> most;
  return most;
}

}  // namespace

Result<DescriptorLimit> descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return fail_errno("ask for the limit of descriptors", errno);
  return DescriptorLimit{limit.rlim_cur, limit.rlim_max};
}

Result<DescriptorLimit> raise_descriptor_limit(std::uint64_t most) {
  const auto before = descriptor_limit();
  if (!before) return before;
  if (!limit_at_start()) limit_at_start() = *before;
  // Whoever is not root keeps its hard limit.
  const std::uint64_t wanted = std::min(most, most_of_any_process());
  if (before->hard < wanted) (void)set_limit({before->soft, wanted});
  const auto allowed = descriptor_limit();
  if (!allowed) return allowed;
  const DescriptorLimit raised{std::min(most, allowed->hard), allowed->hard};
  if (auto set = set_limit(raised); !set) return propagate(set);
  return raised;
}

Status make_room_for_descriptors(std::uint64_t count) {
  const auto limit = descriptor_limit();
  if (!limit) return propagate(limit);
  if (limit->soft > count && is_free_from(limit->soft - count)) return {};
  const auto used = open_descriptors();
  // Descriptors that cannot be counted leave no room to open what is to be counted.
  const std::uint64_t needed = used.value_or(limit->soft) + count;
  if (needed <= limit->soft) return {};
  if (needed > limit->hard) {
    return fail(ErrorCode::ResourceExhausted,
                std::to_string(count) + " more descriptors are needed, of which this process may have " +
                    std::to_string(limit->hard) + " in all",
                "raise its hard limit (ulimit -Hn, LimitNOFILE=)");
  }
  return set_limit({std::clamp(2 * limit->soft, needed, limit->hard), limit->hard});
}

std::optional<DescriptorLimit> descriptor_limit_of_children() { return limit_at_start(); }

Fd move_above_limit(Fd descriptor) {
  const auto limit = descriptor_limit();
  if (!limit || limit->soft >= limit->hard || !set_limit({limit->hard, limit->hard})) return descriptor;
  Fd moved(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, static_cast<int>(limit->soft)));
  const Status restored = set_limit(*limit);
  return moved && restored ? std::move(moved) : std::move(descriptor);
}

Result<std::size_t> open_descriptors() {
  // The directory's size says it from Linux 6.2 on.
  struct stat info {};
  if (::stat("/proc/self/fd", &info) == 0 && info.st_size > 0) return static_cast<std::size_t>(info.st_size);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
  if (!directory) return fail_errno("count our descriptors", errno);
  std::size_t count = 0;
  while (const dirent* entry = ::readdir(directory.get())) count += entry->d_name[0] != '.' ? 1 : 0;
  return count - 1;  // our own way to look
}

// --- opening mark

namespace {

/// Agents mark openings of the same device: a byte that is taken is refused, and another one tried.
constexpr int tries = 8;

constexpr std::uint64_t last_mark = (std::uint64_t{1} << 62) - 1;

struct flock lock_of(OpeningMark mark) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(mark);
  lock.l_len = 1;
  return lock;
}

}  // namespace

Result<OpeningMark> mark_opening(int fd) {
  std::random_device device;
  std::uniform_int_distribution<std::uint64_t> bytes(first_mark, last_mark);
  for (int i = 0; i < tries; ++i) {
    const OpeningMark mark = bytes(device);
    struct flock lock = lock_of(mark);
    if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return mark;
    if (errno == EBADF) return fail(ErrorCode::PermissionDenied, "a descriptor is not for writing");
    if (errno != EAGAIN && errno != EACCES) return fail_errno("mark an opening of a file", errno);
  }
  return fail(ErrorCode::Unavailable, "no byte of a file is free to mark an opening");
}

Result<bool> is_marked(int fd, OpeningMark mark) {
  struct flock lock = lock_of(mark);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return fail_errno("ask for a file's lock", errno);
  // Somebody may have locked more than that byte; such a lock is no mark.
  return lock.l_type != F_UNLCK && lock.l_start == static_cast<off_t>(mark) && lock.l_len == 1;
}

}  // namespace firebreak::os
