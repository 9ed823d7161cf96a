// SPDX-License-Identifier: Apache-2.0
#include "ground/os/library_behind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "ground/os/fd.h"

namespace firebreak::os {
namespace {

/// Of a library in front of a copy: it is one process's alone, and gone by its name once it is loaded.
Result<void*> load_in_front(const std::vector<std::byte>& content, const std::string& folder) {
  std::string path = folder + "/new-XXXXXX";
  const Fd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return fail_errno("make a file in " + folder, errno);
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = ::write(file.get(), content.data() + written, content.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  const bool is_whole = written == content.size();
  // Before all libraries of the program: what else they export is no business of the copy's.
  void* const handle = is_whole ? real_dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : nullptr;
  const char* const why = is_whole && handle == nullptr ? ::dlerror() : nullptr;
  ::unlink(path.c_str());
  if (!is_whole) return fail(ErrorCode::ResourceExhausted, "no room in " + folder);
  if (handle == nullptr) return fail(ErrorCode::NotFound, why != nullptr ? why : "cannot load " + path);
  return handle;
}

void nothing() {}

/// Whoever is called dlsym in this process, it is not asked for itself.
template <class Function>
Function of_c_library(const char* name) {
  Function function = nullptr;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (function == nullptr) function = reinterpret_cast<Function>(::dlvsym(RTLD_NEXT, name, version));
  }
  return function;
}

}  // namespace

Result<LibraryBehind> LibraryBehind::load(const std::string& library, unsigned int copy,
                                          const InFront& in_front) {
  auto path = copy_of_library(library, copy);
  if (!path) return propagate(path);
  const auto in_front_of_it = load_in_front(in_front(*path), path->substr(0, path->rfind('/')));
  if (!in_front_of_it) return propagate(in_front_of_it);
  void* const handle = real_dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail(ErrorCode::NotFound, "cannot load " + *path);
  return LibraryBehind(handle, *in_front_of_it, std::move(*path));
}

void* LibraryBehind::symbol(const char* name) const { return real_dlsym(handle_, name); }

/// The linker has read where a library's last functions are, and asks the library's own table once more: that
/// is in memory, and a copy's.
Status LibraryBehind::unload() {
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0)
    return fail(ErrorCode::Unavailable, "the linker does not know " + path_);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_FINI && entry->d_tag != DT_FINI_ARRAYSZ) continue;
    const std::uintptr_t its_page = reinterpret_cast<std::uintptr_t>(entry) & ~(page - 1);
    const std::size_t to_its_end = reinterpret_cast<std::uintptr_t>(entry + 1) - its_page;
    if (::mprotect(reinterpret_cast<void*>(its_page), to_its_end, PROT_READ | PROT_WRITE) != 0)
      return fail_errno("change what a library does as it is unloaded", errno);
    if (entry->d_tag == DT_FINI) entry->d_un.d_ptr = reinterpret_cast<std::uintptr_t>(&nothing) - map->l_addr;
    if (entry->d_tag == DT_FINI_ARRAYSZ) entry->d_un.d_val = 0;
  }
  (void)real_dlclose(handle_);
  (void)real_dlclose(in_front_);
  handle_ = in_front_ = nullptr;
  void* const still_there = real_dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (still_there == nullptr) return {};
  (void)real_dlclose(still_there);
  return fail(ErrorCode::Unavailable, path_ + " stays in this process");
}

void* real_dlopen(const char* file, int flags) {
  static const auto real = of_c_library<void* (*)(const char*, int)>("dlopen");
  return real == nullptr ? ::dlopen(file, flags) : real(file, flags);
}

void* real_dlsym(void* library, const char* name) {
  static const auto real = of_c_library<void* (*)(void*, const char*)>("dlsym");
  return real == nullptr ? ::dlsym(library, name) : real(library, name);
}

int real_dlclose(void* library) { return ::dlclose(library); }

}  // namespace firebreak::os
