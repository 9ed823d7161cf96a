// SPDX-License-Identifier: Apache-2.0
#include "ground/os/library_name.h"

#include <link.h>

#include <cstdint>

namespace firebreak::os {
namespace {

struct Search {
  std::uintptr_t address;
  std::string name;
};

bool holds(const dl_phdr_info& library, std::uintptr_t address) {
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library.dlpi_phdr[i];
    const std::uintptr_t begin = library.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address - begin < segment.p_memsz) return true;
  }
  return false;
}

/// The dynamic linker has made addresses of what stands there, except in the vDSO.
std::string name_in(const dl_phdr_info& library, const ElfW(Dyn) * entry) {
  const char* texts = nullptr;
  std::uint64_t at = 0;
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) at = entry->d_un.d_val;
  }
  const bool is_known =
      texts != nullptr && at != 0 && holds(library, reinterpret_cast<std::uintptr_t>(texts));
  return is_known ? std::string(texts + at) : std::string();
}

int look(dl_phdr_info* library, std::size_t, void* given) {
  auto& search = *static_cast<Search*>(given);
  if (!holds(*library, search.address)) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    search.name = name_in(*library, reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + segment.p_vaddr));
  }
  return 1;
}

}  // namespace

std::string own_name_of_library(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  ::dl_iterate_phdr(&look, &search);
  return search.name;
}

}  // namespace firebreak::os
