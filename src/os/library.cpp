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

}  // namespace firebreak::os
