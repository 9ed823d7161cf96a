// SPDX-License-Identifier: Apache-2.0
/// Preloaded besides the guard: the kernel is too old for the guard's page. Others get their memory files.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "shared/abi/guard_page.h"

extern "C" __attribute__((visibility("default"))) int memfd_create(const char* name, unsigned int flags) {
  if (std::string_view(name) != firebreak::abi::guard_page_name)
    return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
  errno = ENOSYS;
  return -1;
}
