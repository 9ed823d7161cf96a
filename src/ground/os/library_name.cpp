// SPDX-License-Identifier: Apache-2.0
#include "ground/os/library_name.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace firebreak::os {

/// dl_iterate_phdr() has a lock that another thread may hold at a fork(), and then it hangs in the child.
std::string own_name_of_library(const void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fbase == nullptr) return {};
  const auto* const image = static_cast<const char*>(found.dli_fbase);
  ElfW(Ehdr) header{};
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  const std::span segments(reinterpret_cast<const ElfW(Phdr)*>(image + header.e_phoff), header.e_phnum);
  // A program that lies where it was linked to has addresses in place of distances.
  const std::uintptr_t base = header.e_type == ET_EXEC ? 0 : reinterpret_cast<std::uintptr_t>(image);
  const ElfW(Dyn)* entry = nullptr;
  for (const ElfW(Phdr) & each : segments) {
    if (each.p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(base + each.p_vaddr);
  }
  std::uintptr_t texts = 0;
  std::uint64_t at = 0;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) at = entry->d_un.d_val;
  }
  if (texts == 0 || at == 0) return {};
  // The dynamic linker makes addresses of what stands there, except in the vDSO.
  if (texts < reinterpret_cast<std::uintptr_t>(image)) texts += reinterpret_cast<std::uintptr_t>(image);
  return reinterpret_cast<const char*>(texts + at);
}

}  // namespace firebreak::os
