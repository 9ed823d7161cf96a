// SPDX-License-Identifier: Apache-2.0
/// Functions of the C library in front of its own: what a driver asks them for that is the second one of its
/// process (program/virtual/address_keeping.h). Everybody else gets what they ask for.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "ground/os/memory.h"
#include "program/virtual/address_keeping.h"
#include "program/virtual/addresses.h"

#pragma GCC visibility push(default)
extern "C" {
void* mmap64(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept;
void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept;
int munmap(void* address, size_t size) noexcept;
int bind(int fd, const sockaddr* name, socklen_t size) noexcept;
FILE* fopen(const char* path, const char* mode);
FILE* fopen64(const char* path, const char* mode);
}
#pragma GCC visibility pop

namespace {

using namespace firebreak::virtual_driver;

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

/// The window's placeholder. The first who asks for one makes it, for all.
constinit std::atomic<bool> window_is_kept{false};

using Fopen = FILE* (*)(const char*, const char*);

FILE* open_own_maps(Fopen real, const char* path, const char* mode) {
  FILE* const file = real(path, mode);
  if (file == nullptr) return file;
  std::string text;
  char piece[4096];
  for (std::size_t count = 0; (count = std::fread(piece, 1, sizeof piece, file)) > 0;)
    text.append(piece, count);
  auto memory = firebreak::os::memory_file_with(without_window(text));
  if (!memory) return file;
  std::fclose(file);
  return ::fdopen(memory->release(), "r");
}

FILE* open_file(const char* symbol, const char* path, const char* mode) {
  const auto real = reinterpret_cast<Fopen>(::dlvsym(RTLD_NEXT, symbol, "GLIBC_2.2.5"));
  const bool is_asked = ComingUp::slot() != 0 && path != nullptr && std::strcmp(path, "/proc/self/maps") == 0;
  return is_asked ? open_own_maps(real, path, mode) : real(path, mode);
}

}  // namespace

void* mmap64(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  const bool is_window = ComingUp::slot() != 0 && is_placeholder(number(address), fd, protection, flags);
  if (is_window && window_is_kept.load()) return address;
  auto* const got = firebreak::os::raw_mmap(address, size, protection, flags, fd, offset);
  if (is_window && got == address) window_is_kept.store(true);
  return got;
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  return mmap64(address, size, protection, flags, fd, offset);
}

int munmap(void* address, size_t size) noexcept {
  // Whoever gives up the window is one of several who have it.
  if (window_is_kept.load(std::memory_order_relaxed) && is_in_window(number(address))) return 0;
  return firebreak::os::raw_munmap(address, size);
}

int bind(int fd, const sockaddr* name, socklen_t size) noexcept {
  constexpr std::size_t begin = offsetof(sockaddr_un, sun_path) + 1;
  const auto* const local = reinterpret_cast<const sockaddr_un*>(name);
  const bool is_abstract =
      name != nullptr && size > begin && name->sa_family == AF_UNIX && local->sun_path[0] == '\0';
  if (!is_abstract || ComingUp::slot() == 0) return firebreak::os::raw_bind(fd, name, size);
  const std::string ours = socket_name({local->sun_path + 1, size - begin});
  sockaddr_un named{};
  named.sun_family = AF_UNIX;
  if (ours.size() + 1 > sizeof named.sun_path) return firebreak::os::raw_bind(fd, name, size);
  std::memcpy(named.sun_path + 1, ours.data(), ours.size());
  return firebreak::os::raw_bind(fd, &named, static_cast<socklen_t>(begin + ours.size()));
}

FILE* fopen(const char* path, const char* mode) { return open_file("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_file("fopen64", path, mode); }
