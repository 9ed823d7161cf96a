// SPDX-License-Identifier: Apache-2.0
/// Rows of the table of imports: descriptors, sockets, streams of the C library's.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ground/os/memory.h"
#include "program/instance/rows.h"
#include "program/instance/window.h"

namespace firebreak::instance::rows {
namespace {

int noted(Taken& taken, int fd) {
  taken.descriptors.add(fd);
  return fd;
}

int noted_both(Taken& taken, int result, const int* both) {
  if (result == 0) taken.descriptors.add(both[0]), taken.descriptors.add(both[1]);
  return result;
}

bool is_own_maps(const char* path) { return path != nullptr && std::strcmp(path, "/proc/self/maps") == 0; }

/// The text of it without the window: the addresses that an instance has reserved are no other one's
/// obstacle.
os::Fd maps_without_window() {
  const auto text = os::content_of_proc("/proc/self/maps");
  auto memory = text ? os::memory_file_with(without_window(*text)) : Result<os::Fd>(propagate(text));
  return memory ? std::move(*memory) : os::Fd();
}

}  // namespace

int open_file(Taken& taken, const char* path, int flags, mode_t mode) {
  if (is_own_maps(path)) {
    os::Fd maps = maps_without_window();
    if (maps) return noted(taken, maps.release());
  }
  return noted(taken, ::open(path, flags, mode));
}

int open_file_checked(Taken& taken, const char* path, int flags) { return open_file(taken, path, flags, 0); }

int open_file_at(Taken& taken, int folder, const char* path, int flags, mode_t mode) {
  return is_own_maps(path) ? open_file(taken, path, flags, mode)
                           : noted(taken, ::openat(folder, path, flags, mode));
}

int create_file(Taken& taken, const char* path, mode_t mode) {
  return noted(taken, ::open(path, O_CREAT | O_WRONLY | O_TRUNC, mode));
}

int close_descriptor(Taken& taken, int fd) {
  taken.descriptors.remove(fd);
  return ::close(fd);
}

int duplicate(Taken& taken, int fd) { return noted(taken, ::dup(fd)); }
int duplicate_to(Taken& taken, int fd, int wanted) { return noted(taken, ::dup2(fd, wanted)); }
int duplicate_to_with(Taken& taken, int fd, int wanted, int flags) {
  return noted(taken, ::dup3(fd, wanted, flags));
}

int control_descriptor(Taken& taken, int fd, int command, void* argument) {
  const int result = ::fcntl(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? noted(taken, result) : result;
}

int make_pipe(Taken& taken, int* both) { return noted_both(taken, ::pipe(both), both); }
int make_pipe_with(Taken& taken, int* both, int flags) {
  return noted_both(taken, ::pipe2(both, flags), both);
}
int make_event(Taken& taken, unsigned int value, int flags) { return noted(taken, ::eventfd(value, flags)); }
int make_poll(Taken& taken, int size) { return noted(taken, ::epoll_create(size)); }
int make_poll_with(Taken& taken, int flags) { return noted(taken, ::epoll_create1(flags)); }

int make_socket(Taken& taken, int family, int type, int protocol) {
  return noted(taken, ::socket(family, type, protocol));
}
int make_socket_pair(Taken& taken, int family, int type, int protocol, int* both) {
  return noted_both(taken, ::socketpair(family, type, protocol, both), both);
}
int accept_from(Taken& taken, int fd, sockaddr* name, socklen_t* size) {
  return noted(taken, ::accept(fd, name, size));
}
int accept_from_with(Taken& taken, int fd, sockaddr* name, socklen_t* size, int flags) {
  return noted(taken, ::accept4(fd, name, size, flags));
}

/// A driver says that it is there by the name of a socket, and does not start where somebody has bound that.
int bind_socket(Taken& taken, int fd, const sockaddr* name, socklen_t size) {
  constexpr std::size_t begin = offsetof(sockaddr_un, sun_path) + 1;
  constexpr std::string_view drivers = "cuda-uvmfd-";
  const auto* const local = reinterpret_cast<const sockaddr_un*>(name);
  const bool is_abstract =
      name != nullptr && size > begin && name->sa_family == AF_UNIX && local->sun_path[0] == '\0';
  if (!is_abstract) return os::raw_bind(fd, name, size);
  std::string its(local->sun_path + 1, size - begin);
  if (its.starts_with(drivers)) its += taken.answers.socket_suffix;
  sockaddr_un named{};
  named.sun_family = AF_UNIX;
  if (its.size() + 1 > sizeof named.sun_path) return os::raw_bind(fd, name, size);
  std::memcpy(named.sun_path + 1, its.data(), its.size());
  return os::raw_bind(fd, &named, static_cast<socklen_t>(begin + its.size()));
}

/// Descriptors come in messages, too.
ssize_t receive(Taken& taken, int fd, msghdr* message, int flags) {
  const ssize_t count = ::recvmsg(fd, message, flags);
  if (count < 0) return count;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t descriptors = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < descriptors; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      taken.descriptors.add(number);
    }
  }
  return count;
}

int make_temporary(Taken& taken, char* path) { return noted(taken, ::mkstemp(path)); }

/// Descriptors that it makes in this way are the copy's, too.
long system_call(Taken& taken, long number, long first, long second, long third, long fourth, long fifth,
                 long sixth) {
  const long result = ::syscall(number, first, second, third, fourth, fifth, sixth);
  const bool makes_descriptor = number == SYS_open || number == SYS_openat || number == SYS_memfd_create ||
                                number == SYS_eventfd2 || number == SYS_dup || number == SYS_socket;
  return makes_descriptor ? noted(taken, static_cast<int>(result)) : result;
}

int make_memory_file(Taken& taken, const char* name, unsigned int flags) {
  return noted(taken, static_cast<int>(::syscall(SYS_memfd_create, name, flags)));
}
/// Opens as the C library does: a file on the tmpfs that is there for it.
int open_shared_memory(Taken& taken, const char* name, int flags, mode_t mode) {
  while (*name == '/') ++name;
  return noted(taken,
               ::open((std::string("/dev/shm/") + name).c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode));
}
int make_inotify(Taken& taken) { return noted(taken, ::inotify_init1(0)); }
int make_inotify_with(Taken& taken, int flags) { return noted(taken, ::inotify_init1(flags)); }
int make_timer(Taken& taken, int clock, int flags) { return noted(taken, ::timerfd_create(clock, flags)); }
int make_signal_descriptor(Taken& taken, int fd, const sigset_t* set, int flags) {
  return noted(taken, ::signalfd(fd, set, flags));
}

std::FILE* open_stream(Taken& taken, const char* path, const char* mode) {
  std::FILE* stream = nullptr;
  if (is_own_maps(path)) {
    os::Fd maps = maps_without_window();
    if (maps) stream = ::fdopen(maps.release(), "r");
  }
  if (stream == nullptr) stream = std::fopen(path, mode);
  taken.descriptors.add_stream(stream);
  return stream;
}

std::FILE* open_stream_on(Taken& taken, int fd, const char* mode) {
  std::FILE* const stream = ::fdopen(fd, mode);
  taken.descriptors.add_stream(stream);
  return stream;
}

int close_stream(Taken& taken, std::FILE* stream) {
  taken.descriptors.remove_stream(stream);
  return std::fclose(stream);
}

}  // namespace firebreak::instance::rows
