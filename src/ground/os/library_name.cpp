// SPDX-License-Identifier: Apache-2.0
#include "ground/os/library_name.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdint>

namespace firebreak::os {

/// dl_iterate_phdr() has a lock that another thread may hold at a fork(), and then it hangs in the child.
std::string own_name_of_library(const void* address) {
  Dl_info found{};
  void* given = nullptr;
  if (::dladdr1(address, &found, &given, RTLD_DL_LINKMAP) == 0 || given == nullptr) return {};
  const auto& library = *static_cast<const link_map*>(given);
  if (library.l_ld == nullptr) return {};
  std::uintptr_t texts = 0;
  std::uint64_t at = 0;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) texts = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) at = entry->d_un.d_val;
  }
  if (texts == 0 || at == 0) return {};
  // The dynamic linker makes addresses of what stands there, except in the vDSO.
  if (texts < library.l_addr) texts += library.l_addr;
  return reinterpret_cast<const char*>(texts + at);
}

}  // namespace firebreak::os
