// SPDX-License-Identifier: Apache-2.0
/// dlsym() in front of the C library's: the CUDA runtime and PyTorch look the driver's functions up by name.
#include <dlfcn.h>

#include <atomic>

#include "program/guard/preload/process_driver.h"
#include "program/guard/preload/replacements.h"

namespace {

/// noexcept: a call of one that may throw, out of a function that may not, is never made into a jump.
using Dlsym = void* (*)(void* handle, const char* name) noexcept;

constinit std::atomic<Dlsym> found_dlsym{nullptr};

/// The C library's own. It may be asked for before our constructors have run.
template <class Function>
Function real(std::atomic<Function>& found, const char* name) {
  Function function = found.load(std::memory_order_acquire);
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (function != nullptr) break;
    function = reinterpret_cast<Function>(dlvsym(RTLD_NEXT, name, version));
  }
  found.store(function, std::memory_order_release);
  return function;
}

bool may_be_replaced(void* handle, const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && handle != RTLD_NEXT &&
         !firebreak::guard::Bypass::active();
}

}  // namespace

/// The last call is a jump, so that the C library sees the caller's address and not ours: what RTLD_NEXT
/// means depends on who asks.
extern "C" __attribute__((visibility("default"), optimize("O2", "omit-frame-pointer"))) void* dlsym(
    void* handle, const char* name) noexcept {
  const Dlsym real = ::real(found_dlsym, "dlsym");
  if (!may_be_replaced(handle, name)) return real(handle, name);
  void* const found = real(handle, name);
  if (found == nullptr) return real(handle, name);
  // A program that looks whether there is a driver finds one where it would without us.
  if (firebreak::guard::is_ours(found) && real(RTLD_NEXT, name) == nullptr) return nullptr;
  void* const ours = firebreak::guard::replacement_of_symbol(name, found);
  return ours != nullptr ? ours : found;
}
