// SPDX-License-Identifier: Apache-2.0
/// Files: which one it is, whether it is a regular one, locks, small files of this boot, folders for a while.
#pragma once

#include <sys/types.h>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/kernel.h"

namespace firebreak::os {

// --- file identity

/// One file, whatever it is called. All zero: none, as behind anonymous memory.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// Returns the identity of the file behind a descriptor.
Result<FileIdentity> identity_of(int fd);

// --- regular file
// Regular files, whatever their names: which one it is, and where a descriptor of it stands.

/// Unsupported: `path` is something else, a pipe or a terminal, or follows to one. It is not opened for that.
Result<FileIdentity> regular_file_at(Kernel& kernel, const std::string& path);

/// Opens it for reading, without blocking, from its beginning; with an offset of our own, whoever else holds
/// it. Unsupported as above.
Result<Fd> open_regular_file(Kernel& kernel, const std::string& path);

/// The same of a file that somebody else has chosen. Unsupported also where its file system is one in user
/// space (FUSE), or is mounted nowhere where we are: then each open() and read() may last as long as that one
/// likes.
Result<Fd> open_regular_file_of_others(Kernel& kernel, const std::string& path);

/// Moves the descriptor's place, in bytes from the file's beginning; the first returns where that is.
Result<std::size_t> go_to_end(int fd);
Status go_to(int fd, std::uint64_t place);

// --- pipe

struct Pipe {
  Fd reading;
  Fd writing;
};

/// Close-on-exec, as every descriptor of ours.
Result<Pipe> make_pipe();

/// A named pipe, for us alone. One that is there is fine; anything else of that name is Internal.
Status make_fifo(const std::string& path);
/// Gives a file to that user, who alone but for root opens it. PermissionDenied: we are not root, and that is
/// somebody else.
Status give_to_user(const std::string& path, uid_t user);
/// The same of what a descriptor is of, also one that was opened with O_PATH.
Status give_file(const Fd& file, uid_t user);
/// Opens what is behind a name, for nothing but to be asked what it is; a link is not followed.
Result<Fd> find_file(const std::string& path);
/// Members of its group, which is our own, read a file of ours as well.
Status let_group_read(const std::string& path);
/// Members of that group do.
Status let_group_read(const Fd& file, gid_t group);
/// Facts about the file of a descriptor.
struct FileFacts {
  bool is_regular = false;
  bool is_fifo = false;
  uid_t owner = 0;
  gid_t group = 0;
  std::uint64_t names = 0;     ///< how many it has
  bool runs_as_owner = false;  ///< whoever runs it becomes its user, or its group
};
Result<FileFacts> facts_of(const Fd& file);
/// True when that file is in a folder of that user's, which is no link to one, under the name by which it was
/// opened. It may have other names.
bool lies_in(const Fd& file, const std::string& folder, uid_t user);
/// True for a folder of root's, no link to one, where nobody else may write.
bool is_roots_folder(const std::string& path);
/// True when others than its owner may make files there.
bool may_others_write(const std::string& folder);
/// A folder that was root's becomes that user's, with what in it is root's but what has other names, and its
/// pipes' group becomes the user's, whose members read them. Fine where there is none, or it is the user's
/// already.
Status hand_over_folder(const std::string& path, uid_t user, gid_t group);
/// Takes away a socket of that name, if it is another user's than that.
void remove_socket_of_others(const std::string& path, uid_t user);
enum class FileType { Socket, Folder };
/// Takes away what is that user's under a name and is of another type; a folder goes with all that it holds.
/// Whatever is not that user's stays.
Status remove_if_of_other_type(const std::string& path, uid_t user, FileType type);
/// Takes away what is that user's under a name, of whatever type, and a file that has other names besides:
/// that user may have given it this one.
Status remove_if_by_user(const std::string& path, uid_t user);
/// True when there is anything of that name; a link counts.
bool is_there(const std::string& path);
/// True for a regular file that is no link to one.
bool is_plain_file(const std::string& path);
/// True for a named pipe of that user's that is no link to one.
bool is_fifo_of(const std::string& path, uid_t user);
/// A named pipe is marked in its mode, which changes nothing of who opens it, until that is taken back.
Status mark_fifo(const Fd& fifo, bool is_marked);
bool is_marked_fifo(const std::string& path);
/// True when we may write there, as the kernel sees it now.
bool may_write(const std::string& path);
/// Lets others reach what is in a folder by its name, without listing it.
Status let_through(const std::string& folder);
/// The same for the members of a group alone. PermissionDenied: it is not ours to give.
Status let_group_through(const std::string& folder, gid_t group);
/// The same, and they may list it. `others_through`: others reach what is in it by its name.
Status let_group_list(const std::string& folder, gid_t group, bool others_through);
/// Members of that group may make files in a folder of root's, and take away their own alone; others may
/// reach what is in it by its name. PermissionDenied: the folder is not root's, or is a link.
Status share_folder(const std::string& folder, gid_t group);
/// InvalidArgument: there is no such group. By its name or its number.
Result<gid_t> group_named(const std::string& name);

/// Lets that many bytes wait in a pipe, a power of two and a page at least, as far as the machine allows it
/// and what waits there has room. Returns how many it is now; 0: that is no pipe.
std::size_t resize_pipe(const Fd& fd, std::size_t bytes);
/// Returns at most so many of the bytes that wait in a pipe; they stay there. Never waits. Empty where it
/// cannot.
std::vector<std::byte> peek_pipe(const Fd& fd, std::size_t bytes_max);

// --- make and remove file

/// An empty one, which all may read; fine when something of that name is there, whatever that is.
Status make_file(const std::string& path);
/// A file or a link, and no folder; fine when it is not there.
Status remove_file(const std::string& path);

// --- file lock

/// A file that one process at a time holds, with its process id in it. Linux gives it back when the holder is
/// gone, however it went; the file itself stays, so that nobody locks one that is about to vanish.
class FileLock {
 public:
  /// Makes the file where it is missing. PermissionDenied: it belongs to somebody else, or is a link or
  /// another name of another file. Unavailable, with the holder's process id in the message, when
  /// somebody holds it (also another object of this process). Never waits.
  static Result<FileLock> take(const std::string& path);

  /// A process that has a descriptor of it holds it as well.
  const Fd& fd() const { return fd_; }

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

// --- interprocess mutex

/// A mutex between processes that share a file: Linux unlocks it for one that dies. By
/// flock() on a description of our own, which others of the same file do not share. For one thread.
class InterprocessMutex {
 public:
  /// `shared` is any descriptor of the file; it is opened anew.
  static Result<InterprocessMutex> of(int shared);

  /// Timeout: another process holds it for so long.
  Status lock(Milliseconds timeout);
  void unlock();

 private:
  explicit InterprocessMutex(Fd own) : own_(std::move(own)) {}

  Fd own_;
};

// --- runtime file
// Small files that one user's programs leave for each other until the next boot, and that no other user can
// write or plant.

/// The folder for them: XDG_RUNTIME_DIR/firebreak; without that variable /run/firebreak for root and
/// /tmp/firebreak-UID for everybody else. It need not be there.
std::string runtime_folder();

/// PermissionDenied: the file or its folder is not ours (or root's), or others may write it, or it is no
/// regular file; then its content proves nothing. NotFound: there is none.
Result<std::string> read_runtime_file(const std::string& folder, const std::string& name);

/// Replaces a file at once: readers see the old content or the new. Makes the folder, for us alone.
/// PermissionDenied: the folder is not ours, or others may write it.
Status replace_runtime_file(const std::string& folder, const std::string& name, const std::string& content);

// --- temporary directory

/// A private directory (mode 0700) with a path short enough for sockets; removed with all it holds at the
/// end.
class TemporaryDirectory {
 public:
  /// Made under `parent`; empty: TMPDIR where that is short, else /tmp.
  static Result<TemporaryDirectory> create(const std::string& parent = {});

  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { remove(); }

  const std::string& path() const { return path_; }
  /// Takes it away now; what cannot be removed stays.
  void remove();

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

/// Makes one directory of mode 0700, and its parents; fine when it is there already.
Status make_directories(const std::string& path);

/// Takes away all that a directory holds, and leaves the directory; fine when it is not there. Follows no
/// links.
Status clear_directory(const std::string& path);

}  // namespace firebreak::os
