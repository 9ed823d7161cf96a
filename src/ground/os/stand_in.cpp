// SPDX-License-Identifier: Apache-2.0
#include "ground/os/stand_in.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <memory>

namespace firebreak::os {
namespace {

std::string text_of(const sockaddr_un& address, socklen_t size_bytes) {
  constexpr std::size_t before_path = offsetof(sockaddr_un, sun_path);
  if (address.sun_family != AF_UNIX || size_bytes <= before_path) return {};
  std::string text(address.sun_path, size_bytes - before_path);
  const bool is_abstract = text.front() == '\0';
  if (is_abstract) text.front() = '@';
  if (!is_abstract) text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  return text;
}

template <class Ask>
std::string ask_for_name(int number, Ask ask) {
  sockaddr_un address{};
  socklen_t size_bytes = sizeof address;
  return ask(number, reinterpret_cast<sockaddr*>(&address), &size_bytes) == 0 ? text_of(address, size_bytes)
                                                                              : std::string();
}

}  // namespace

Result<QuietSocket> make_quiet_socket() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno("make a pair of sockets", errno);
  return QuietSocket{Fd(ends[0]), Fd(ends[1])};
}

Status stand_in_for_descriptor(const QuietSocket& socket, int number) {
  return ::dup3(socket.quiet.get(), number, O_CLOEXEC) < 0
             ? Status(fail_errno("put a socket in a place", errno))
             : Status();
}

Status stand_in_for_region(AddressRange range) {
  void* const begin = reinterpret_cast<void*>(range.begin);
  void* const got = ::mmap(begin, range.size_bytes(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return got == MAP_FAILED ? Status(fail_errno("put memory in a place", errno)) : Status();
}

SocketNames socket_names(int number) {
  return {ask_for_name(number, ::getsockname), ask_for_name(number, ::getpeername)};
}

std::vector<std::pair<int, std::string>> named_descriptors() {
  std::vector<std::pair<int, std::string>> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (folder == nullptr) return all;
  while (const dirent* const entry = ::readdir(folder.get())) {
    int number = -1;
    const std::string_view name = entry->d_name;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc()) continue;
    if (number == ::dirfd(folder.get())) continue;
    std::string link(512, '\0');
    const ssize_t length = ::readlinkat(::dirfd(folder.get()), entry->d_name, link.data(), link.size());
    if (length <= 0) continue;
    link.resize(static_cast<std::size_t>(length));
    all.emplace_back(number, std::move(link));
  }
  return all;
}

}  // namespace firebreak::os
