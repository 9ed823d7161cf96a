// SPDX-License-Identifier: Apache-2.0
#include "os/library.h"

#include <dlfcn.h>

namespace firebreak::os {

Result<void*> load_symbol(const std::string& library, const char* symbol) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();  // begins with the library's name
    return fail(ErrorCode::NotFound, why != nullptr ? why : "cannot load " + library);
  }
  void* address = ::dlsym(handle, symbol);
  if (address == nullptr) return fail(ErrorCode::NotFound, library + " has no " + symbol);
  return address;
}

std::string beside_this_library(const std::string& name) {
  Dl_info ours{};
  if (::dladdr(reinterpret_cast<const void*>(&beside_this_library), &ours) == 0 || !ours.dli_fname)
    return name;
  const std::string path = ours.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? name : path.substr(0, slash + 1) + name;
}

}  // namespace firebreak::os
