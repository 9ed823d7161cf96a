// SPDX-License-Identifier: Apache-2.0
/// A copy of a shared library behind another one, in which the linker looks each of its names up first; and
/// what stands below others who stand in front of the C library.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::os {

/// A copy of a shared library that this process has for itself: with data of its own, whoever else has loaded
/// the library. Loaded until unload(). Any thread may ask for a symbol.
class LibraryBehind {
 public:
  /// Copy number `copy` of the library, as PrivateLibrary has it. `in_front`, given the copy's path: the
  /// content of a library that needs that one, and that comes first from the copy's constructors on.
  /// NotFound: no such library. PermissionDenied: somebody else has put something in the way.
  /// ResourceExhausted: no room.
  using InFront = std::function<std::vector<std::byte>(const std::string& path)>;
  static Result<LibraryBehind> load(const std::string& library, unsigned int copy, const InFront& in_front);
  /// Null: it has none of that name.
  void* symbol(const char* name) const;
  /// As dlopen() gave it.
  void* handle() const { return handle_; }
  /// It goes, and no code of it runs: what it wants done then is taken out of what the linker has read.
  /// Nobody uses anything of it any more. Unavailable: something else keeps it.
  Status unload();

 private:
  LibraryBehind(void* handle, void* in_front, std::string path)
      : handle_(handle), in_front_(in_front), path_(std::move(path)) {}
  void* handle_;
  void* in_front_;
  std::string path_;
};

/// The file of copy number `copy`, which is made where it is not there (os::PrivateLibrary).
Result<std::string> copy_of_library(const std::string& library, unsigned int copy);

/// The C library's own functions of these names, whoever stands in front of them in this process.
void* real_dlopen(const char* file, int flags);
void* real_dlsym(void* library, const char* name);
int real_dlclose(void* library);

/// Runs `start`, and a thread that it starts gets none of the process's signals.
int without_signals(const std::function<int()>& start);

}  // namespace firebreak::os
