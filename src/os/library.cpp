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

Result<std::string> library_of(const void* function) {
  Dl_info found{};
  if (::dladdr(function, &found) == 0 || found.dli_fname == nullptr) {
    return fail(ErrorCode::NotFound, "an address that is part of no library");
  }
  return std::string(found.dli_fname);
}

std::string beside_this_library(const std::string& name) {
  const auto path = library_of(reinterpret_cast<const void*>(&beside_this_library));
  const std::size_t slash = path ? path->rfind('/') : std::string::npos;
  return slash == std::string::npos ? name : path->substr(0, slash + 1) + name;
}

}  // namespace firebreak::os
