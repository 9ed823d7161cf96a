// SPDX-License-Identifier: Apache-2.0
#include "ground/os/file.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "ground/os/fd.h"
#include "ground/os/self.h"

namespace firebreak::os {

// --- file identity

namespace {

/// Uses facts that Linux has cached; asking the file system could block. The call goes by number, since the
/// oldest supported C library has no such function.
bool look_up(int fd, struct statx& facts) {
  return ::syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &facts) ==
         0;
}

FileIdentity identity_in(const struct statx& facts) {
  return {makedev(facts.stx_dev_major, facts.stx_dev_minor), facts.stx_ino};
}

}  // namespace

Result<FileIdentity> identity_of(int fd) {
  struct statx facts {};
  if (!look_up(fd, facts)) return fail_errno("ask which file a descriptor is", errno);
  return identity_in(facts);
}

// --- regular file

namespace {

Result<FileIdentity> identity_of(int fd, const std::string& path) {
  struct statx facts {};
  if (!look_up(fd, facts)) return fail_errno("look at " + path, errno);
  if (!S_ISREG(facts.stx_mode)) return fail(ErrorCode::Unsupported, path + " is no regular file");
  return identity_in(facts);
}

}  // namespace

Result<FileIdentity> regular_file_at(Kernel& kernel, const std::string& path) {
  // Opened for nothing but to be asked what it is: that wakes no writer of a pipe and no terminal.
  const Result<Fd> found = kernel.open(path, O_PATH);
  if (!found) return propagate(found);
  return identity_of(found->get(), path);
}

Result<Fd> open_regular_file(Kernel& kernel, const std::string& path) {
  const Result<Fd> found = kernel.open(path, O_PATH);
  if (!found) return propagate(found);
  if (const auto identity = identity_of(found->get(), path); !identity) return propagate(identity);
  // The very file that was looked at, even if the path leads to another by now.
  return kernel.open("/proc/self/fd/" + std::to_string(found->get()), O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

namespace {

struct ListedMount {
  std::string_view number;
  std::string_view device;
  bool is_of_user_space = true;
};

/// proc(5): number parent major:minor ... - type ...
ListedMount listed_mount(std::string_view line) {
  std::array<std::string_view, 3> fields;
  for (std::string_view& field : fields) {
    field = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(field.size() + 1, line.size()));
  }
  constexpr std::string_view before_type = " - ";
  const std::size_t type = line.find(before_type);
  const bool is_fuse =
      type == std::string_view::npos || line.substr(type + before_type.size()).starts_with("fuse");
  return {fields[0], fields[2], is_fuse};
}

/// Where a file lies, as /proc/self/mountinfo names it.
struct MountOfFile {
  std::string number;  ///< "none": Linux does not say
  std::string device;  ///< major:minor

  bool operator==(const MountOfFile&) const = default;
};

/// Asks no file system. Empty: it cannot be known.
std::optional<MountOfFile> mount_of(int folder, const char* path, int flags) {
  constexpr unsigned mount_number = 0x1000;  // STATX_MNT_ID, of Linux 5.8; older headers have none
  constexpr std::size_t place_of_mount_number = 144;
  struct statx facts {};
  if (::syscall(SYS_statx, folder, path, flags | AT_STATX_DONT_SYNC, STATX_TYPE | mount_number, &facts) != 0)
    return std::nullopt;
  std::uint64_t number = 0;
  std::memcpy(&number, reinterpret_cast<const char*>(&facts) + place_of_mount_number, sizeof(number));
  const bool has_number = (facts.stx_mask & mount_number) != 0;
  return MountOfFile{has_number ? std::to_string(number) : "none",
                     std::to_string(facts.stx_dev_major) + ":" + std::to_string(facts.stx_dev_minor)};
}

bool is_on_file_system_of_ours(Kernel& kernel, int fd) {
  const auto mount = mount_of(fd, "", AT_EMPTY_PATH);
  if (!mount) return false;
  const auto mounts = kernel.read_file("/proc/self/mountinfo");
  std::string_view left = mounts ? std::string_view(*mounts) : std::string_view();
  bool is_listed = false;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    const auto listed = listed_mount(line);
    if (listed.number == mount->number || listed.device == mount->device) {
      if (!listed.is_of_user_space) return true;
      is_listed = true;
    }
    left.remove_prefix(std::min(line.size() + 1, left.size()));
  }
  // The root of a chroot is seldom a mount's, and then not listed. We run from it ourselves.
  return !is_listed && mount == mount_of(AT_FDCWD, "/", 0);
}

}  // namespace

Result<Fd> open_regular_file_of_others(Kernel& kernel, const std::string& path) {
  const Result<Fd> found = kernel.open(path, O_PATH);
  if (!found) return propagate(found);
  if (const auto identity = identity_of(found->get(), path); !identity) return propagate(identity);
  if (!is_on_file_system_of_ours(kernel, found->get()))
    return fail(ErrorCode::Unsupported, path + " is on a file system that may make us wait");
  return kernel.open("/proc/self/fd/" + std::to_string(found->get()), O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

Result<std::size_t> go_to_end(int fd) {
  const off_t place = ::lseek(fd, 0, SEEK_END);
  if (place < 0) return fail_errno("go to a file's end", errno);
  return static_cast<std::size_t>(place);
}

Status go_to(int fd, std::uint64_t place) {
  if (::lseek(fd, static_cast<off_t>(place), SEEK_SET) >= 0) return {};
  return fail_errno("go to a place in a file", errno);
}

// --- pipe

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("make a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Status make_fifo(const std::string& path) {
  if (::mkfifo(path.c_str(), 0600) == 0) return {};
  struct stat info {};
  if (errno != EEXIST || ::lstat(path.c_str(), &info) != 0) return fail_errno("make the pipe " + path, errno);
  if (!S_ISFIFO(info.st_mode)) return fail(ErrorCode::Internal, path + " is there, and is no pipe");
  return {};
}

Status give_to_user(const std::string& path, uid_t user) {
  if (::lchown(path.c_str(), user, static_cast<gid_t>(-1)) == 0) return {};
  return fail_errno("give " + path + " to user " + std::to_string(user), errno);
}

Status give_file(const Fd& file, uid_t user) {
  if (::fchownat(file.get(), "", user, static_cast<gid_t>(-1), AT_EMPTY_PATH) == 0) return {};
  return fail_errno("give a file to user " + std::to_string(user), errno);
}

Status let_group_read(const std::string& path) {
  if (::chmod(path.c_str(), 0640) == 0) return {};
  return fail_errno("let the group read " + path, errno);
}

Status let_group_read(const Fd& file, gid_t group) {
  if (::fchown(file.get(), static_cast<uid_t>(-1), group) == 0 && ::fchmod(file.get(), 0640) == 0) return {};
  return fail_errno("let group " + std::to_string(group) + " read a file", errno);
}

Result<Fd> find_file(const std::string& path) {
  Fd found(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found) return fail_errno("open " + path, errno);
  return found;
}

Result<FileFacts> facts_of(const Fd& file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail_errno("ask what a file is", errno);
  return FileFacts{S_ISREG(info.st_mode), S_ISFIFO(info.st_mode), info.st_uid,
                   info.st_gid,           info.st_nlink,          (info.st_mode & (S_ISUID | S_ISGID)) != 0};
}

bool lies_in(const Fd& file, const std::string& folder, uid_t user) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file.get()), error);
  const Fd opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat of_folder {};
  struct stat named {};
  struct stat info {};
  return !error && opened && ::fstat(opened.get(), &of_folder) == 0 && of_folder.st_uid == user &&
         ::fstatat(opened.get(), path.filename().c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(file.get(), &info) == 0 && named.st_dev == info.st_dev && named.st_ino == info.st_ino;
}

bool is_roots_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == 0 &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool may_others_write(const std::string& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

namespace {

/// Whatever it has become meanwhile: what was looked at is what changes.
void hand_over_file(const Fd& folder, const char* name, uid_t user, gid_t group) {
  const Fd file(::openat(folder.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const auto facts = file ? facts_of(file) : Result<FileFacts>(FileFacts{});
  if (!facts || facts->names != 1 || (!facts->is_regular && !facts->is_fifo)) return;
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  if (facts->owner == 0) (void)give_file(file, user);
  if (!facts->is_fifo) return;
  struct stat info {};
  if (::fchownat(file.get(), "", static_cast<uid_t>(-1), group, AT_EMPTY_PATH) == 0 &&
      ::fstat(file.get(), &info) == 0)
    (void)::chmod(path.c_str(), (info.st_mode & 07777U) | S_IRGRP);
}

}  // namespace

Status hand_over_folder(const std::string& path, uid_t user, gid_t group) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return errno == ENOENT ? Status{} : fail_errno("open " + path, errno);
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) return fail_errno("look at " + path, errno);
  // A folder of another user's holds nothing that can be trusted to be of root's making.
  if (info.st_uid == user) return {};
  if (info.st_uid != 0) return fail(ErrorCode::PermissionDenied, path + " is not root's", "remove it");
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd/" + std::to_string(folder.get()), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    hand_over_file(folder, entries->path().filename().c_str(), user, group);
  if (::fchown(folder.get(), user, group) == 0) return {};
  return fail_errno("give " + path + " to user " + std::to_string(user), errno);
}

void remove_socket_of_others(const std::string& path, uid_t user) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && info.st_uid != user)
    (void)::unlink(path.c_str());
}

namespace {

/// Follows no links on its way, whoever puts some there meanwhile (openat).
Status remove_all(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? Status(fail_errno("remove " + path, error.value())) : Status{};
}

mode_t mode_of(FileType type) { return type == FileType::Folder ? S_IFDIR : S_IFSOCK; }

}  // namespace

Status remove_if_of_other_type(const std::string& path, uid_t user, FileType type) {
  struct stat info {};
  const bool is_theirs = ::lstat(path.c_str(), &info) == 0 && info.st_uid == user;
  return is_theirs && (info.st_mode & S_IFMT) != mode_of(type) ? remove_all(path) : Status{};
}

Status remove_if_by_user(const std::string& path, uid_t user) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  const bool has_other_names = !S_ISDIR(info.st_mode) && info.st_nlink > 1;
  return info.st_uid == user || has_other_names ? remove_all(path) : Status{};
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

bool is_plain_file(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_fifo_of(const std::string& path, uid_t user) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode) && info.st_uid == user;
}

Status mark_fifo(const Fd& fifo, bool is_marked) {
  struct stat info {};
  if (::fstat(fifo.get(), &info) != 0) return fail_errno("mark a pipe", errno);
  if (!S_ISFIFO(info.st_mode)) return fail(ErrorCode::InvalidArgument, "that is no named pipe");
  const mode_t mode = info.st_mode & 07777U;
  // fchmod() takes no descriptor that was opened with O_PATH.
  const std::string path = "/proc/self/fd/" + std::to_string(fifo.get());
  if (::chmod(path.c_str(), is_marked ? mode | S_IXUSR : mode & ~mode_t{S_IXUSR}) != 0)
    return fail_errno("mark a pipe", errno);
  return {};
}

bool is_marked_fifo(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISFIFO(info.st_mode) && (info.st_mode & S_IXUSR) != 0;
}

bool may_write(const std::string& path) { return ::access(path.c_str(), W_OK) == 0; }

Status let_through(const std::string& folder) {
  if (::chmod(folder.c_str(), 0711) == 0) return {};
  return fail_errno("let others through " + folder, errno);
}

Status let_group_through(const std::string& folder, gid_t group) {
  const bool done =
      ::lchown(folder.c_str(), static_cast<uid_t>(-1), group) == 0 && ::chmod(folder.c_str(), 0710) == 0;
  if (done) return {};
  return fail_errno("let group " + std::to_string(group) + " through " + folder, errno);
}

Status let_group_list(const std::string& folder, gid_t group, bool others_through) {
  const bool done = ::lchown(folder.c_str(), static_cast<uid_t>(-1), group) == 0 &&
                    ::chmod(folder.c_str(), others_through ? 0751 : 0750) == 0;
  if (done) return {};
  return fail_errno("let group " + std::to_string(group) + " list " + folder, errno);
}

Status share_folder(const std::string& folder, gid_t group) {
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return fail_errno("open " + folder, errno);
  struct stat info {};
  if (::fstat(opened.get(), &info) != 0) return fail_errno("look at " + folder, errno);
  if (info.st_uid != 0) return fail(ErrorCode::PermissionDenied, folder + " is not root's", "remove it");
  constexpr mode_t sticky_for_a_group = S_ISVTX | 0771;
  if (::fchown(opened.get(), 0, group) != 0 || ::fchmod(opened.get(), sticky_for_a_group) != 0)
    return fail_errno("share " + folder, errno);
  return {};
}

Result<gid_t> group_named(const std::string& name) {
  gid_t number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec == std::errc() && read.ptr == name.data() + name.size()) return number;
  std::array<char, 16384> room{};
  ::group entry{};
  ::group* found = nullptr;
  (void)::getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
  if (found != nullptr) return found->gr_gid;
  return fail(ErrorCode::InvalidArgument, "there is no group '" + name + "'",
              "make it with groupadd --system");
}

std::size_t resize_pipe(const Fd& fd, std::size_t bytes) {
  (void)::fcntl(fd.get(), F_SETPIPE_SZ, static_cast<int>(bytes));
  return static_cast<std::size_t>(std::max(0, ::fcntl(fd.get(), F_GETPIPE_SZ)));
}

std::vector<std::byte> peek_pipe(const Fd& fd, std::size_t bytes_max) {
  auto copy = make_pipe();
  if (!copy) return {};
  resize_pipe(copy->writing, std::bit_ceil(bytes_max));
  const ssize_t waiting = ::tee(fd.get(), copy->writing.get(), bytes_max, SPLICE_F_NONBLOCK);
  if (waiting <= 0) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(waiting));
  const ssize_t got = ::read(copy->reading.get(), bytes.data(), bytes.size());
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return bytes;
}

// --- make and remove file

Status make_file(const std::string& path) {
  constexpr mode_t for_all_to_read = 0644;
  const Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, for_all_to_read));
  if (made || errno == EEXIST) return {};
  return fail_errno("make " + path, errno);
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno("remove " + path, errno);
}

// --- file lock

namespace {

/// The number that the holder wrote; it may be about to.
std::string holder_of(const Fd& fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
  std::string pid;
  for (ssize_t at = 0; at < size && std::isdigit(static_cast<unsigned char>(text.at(std::size_t(at)))) != 0;
       ++at) {
    pid += text.at(std::size_t(at));
  }
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

namespace {

/// Linux may not let root open another user's file, where others may make files, by a call that could make it
/// (fs.protected_regular).
Fd open_or_make(const std::string& path) {
  constexpr int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd fd(::open(path.c_str(), flags));
  if (!fd && errno == ENOENT) fd = Fd(::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600));
  if (!fd && errno == EEXIST) fd = Fd(::open(path.c_str(), flags));
  return fd;
}

}  // namespace

Result<FileLock> FileLock::take(const std::string& path) {
  Fd fd = open_or_make(path);
  if (!fd) return fail_errno("open " + path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("look at " + path, errno);
  // Others who may write there could have put another file of ours there, or a link to one.
  if (info.st_uid != ::geteuid() || !S_ISREG(info.st_mode) || info.st_nlink != 1)
    return fail(ErrorCode::PermissionDenied, path + " is not ours alone");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno("lock " + path, errno);
    return fail(ErrorCode::Unavailable, holder_of(fd) + " holds " + path);
  }
  const std::string pid = std::to_string(own_pid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return fail_errno("write " + path, errno);
  }
  return FileLock(std::move(fd));
}

// --- interprocess mutex

namespace {

/// Whoever holds it does so for one call; it is not worth a wake-up of its own.
constexpr std::chrono::microseconds look_pause{100};

}  // namespace

Result<InterprocessMutex> InterprocessMutex::of(int shared) {
  const std::string path = "/proc/self/fd/" + std::to_string(shared);
  Fd own(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!own) return fail_errno("open " + path, errno);
  return InterprocessMutex(std::move(own));
}

Status InterprocessMutex::lock(Milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (::flock(own_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail_errno("flock", errno);
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(ErrorCode::Timeout, "another process of the tenant is still sending");
    std::this_thread::sleep_for(look_pause);
  }
  return {};
}

void InterprocessMutex::unlock() { (void)::flock(own_.get(), LOCK_UN); }

// --- runtime file

namespace {

constexpr std::size_t size_max = 65536;

/// Checks that nobody else could have written what is behind the descriptor; PermissionDenied.
Status check_ours(const Fd& fd, mode_t type, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("look at " + path, errno);
  const bool owned = info.st_uid == ::geteuid() || info.st_uid == 0;
  // A sticky folder of root's keeps everybody else from taking away what is root's or ours (share_folder).
  const bool is_sticky = type == S_IFDIR && info.st_uid == 0 && (info.st_mode & S_ISVTX) != 0;
  const bool closed = is_sticky || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (owned && closed && (info.st_mode & S_IFMT) == type) return {};
  return fail(ErrorCode::PermissionDenied, path + " is not of our making", "remove it");
}

Result<Fd> open_ours(int folder, const std::string& path, int flags, mode_t type) {
  Fd fd(::openat(folder, path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ELOOP) return fail(ErrorCode::PermissionDenied, path + " is a link", "remove it");
  if (!fd) return fail_errno("open " + path, errno);
  if (const Status ours = check_ours(fd, type, path); !ours) return propagate(ours);
  return fd;
}

Result<Fd> open_folder(const std::string& folder) {
  return open_ours(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, S_IFDIR);
}

Status write_all(const Fd& fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write", errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

std::string runtime_folder() {
  const auto given = environment_variable("XDG_RUNTIME_DIR");
  if (given && given->starts_with('/')) return *given + "/firebreak";
  const uid_t user = ::geteuid();
  return user == 0 ? "/run/firebreak" : "/tmp/firebreak-" + std::to_string(user);
}

Result<std::string> read_runtime_file(const std::string& folder, const std::string& name) {
  const auto opened = open_folder(folder);
  if (!opened) return propagate(opened);
  const auto file = open_ours(opened->get(), name, O_RDONLY, S_IFREG);
  if (!file) return propagate(file, folder);
  std::string content;
  std::array<char, 4096> buffer;
  while (content.size() < size_max) {
    const ssize_t got = ::read(file->get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read " + folder + "/" + name, errno);
    if (got == 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return content;
}

Status replace_runtime_file(const std::string& folder, const std::string& name, const std::string& content) {
  if (const Status made = make_directories(folder); !made) return made;
  const auto opened = open_folder(folder);
  if (!opened) return propagate(opened);
  const std::string next = name + "." + std::to_string(own_pid());
  const Fd file(
      ::openat(opened->get(), next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno("make " + folder + "/" + next, errno);
  Status written = write_all(file, content);
  if (written && ::renameat(opened->get(), next.c_str(), opened->get(), name.c_str()) != 0)
    written = fail_errno("replace " + folder + "/" + name, errno);
  if (!written) ::unlinkat(opened->get(), next.c_str(), 0);
  return written;
}

// --- temporary directory

namespace {

/// Leaves room for our own names and for a socket's within the 108 bytes of a socket's path.
constexpr std::size_t longest_parent = 40;

std::string default_parent() {
  const std::string wanted = environment_variable("TMPDIR").value_or("/tmp");
  return wanted.empty() || wanted.size() > longest_parent ? "/tmp" : wanted;
}

}  // namespace

Result<TemporaryDirectory> TemporaryDirectory::create(const std::string& parent) {
  std::string path = (parent.empty() ? default_parent() : parent) + "/fb-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("make a directory " + path, errno);
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

void TemporaryDirectory::remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(std::exchange(path_, {}), ignored);
}

Status make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if (::mkdir(path.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST) {
      return fail_errno("make the directory " + path.substr(0, end), errno);
    }
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno("make the directory " + path, errno);
  return {};
}

Status clear_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entries(path, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::filesystem::remove_all(entries->path(), error);
    if (error) break;
  }
  return error ? Status(fail_errno("clear the directory " + path, error.value())) : Status{};
}

}  // namespace firebreak::os
