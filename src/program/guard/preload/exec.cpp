// SPDX-License-Identifier: Apache-2.0
/// exec and posix_spawn in front of the C library's: a program that has another root by now, or other mounts,
/// may not have this library there, and the dynamic linker would say so in each program that it starts.
#include <alloca.h>
#include <dlfcn.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>

#include "program/guard/preload/passing_on.h"

namespace {

using firebreak::guard::has_guard;
using firebreak::guard::preloads_in;
using firebreak::guard::without_guard;

/// All that is found before, when the library is loaded: exec may follow vfork().
struct Found {
  decltype(&::execve) execve = nullptr;
  decltype(&::execvpe) execvpe = nullptr;
  decltype(&::posix_spawn) posix_spawn = nullptr;
  decltype(&::posix_spawnp) posix_spawnp = nullptr;
  const char* own_file = nullptr;
};
constinit Found found;

template <class Function>
void find(Function& into, const char* name) {
  into = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

/// Before all other constructors of this library: what they start goes this way, too.
[[gnu::constructor(101)]] void find_all() {
  Dl_info own{};
  find(found.execve, "execve");
  find(found.execvpe, "execvpe");
  find(found.posix_spawn, "posix_spawn");
  find(found.posix_spawnp, "posix_spawnp");
  if (::dladdr(reinterpret_cast<const void*>(&find_all), &own) != 0) found.own_file = own.dli_fname;
}

/// The entry that has the library loaded, where its file is out of sight; null: nothing is to change.
char* const* entry_to_change(char* const* environment) {
  if (environment == nullptr || found.own_file == nullptr) return nullptr;
  char* const* entry = environment;
  while (*entry != nullptr && preloads_in(*entry).empty()) ++entry;
  if (*entry == nullptr || !has_guard(preloads_in(*entry))) return nullptr;
  const int before = errno;
  const bool is_there = ::access(found.own_file, R_OK) == 0;
  errno = before;
  return is_there ? nullptr : entry;
}

std::size_t length_of(char* const* environment) {
  std::size_t length = 0;
  while (environment[length] != nullptr) ++length;
  return length;
}

/// Runs `go_on` with the environment that the next program is to have.
template <class GoOn>
int with_environment(char* const* environment, const GoOn& go_on) {
  char* const* const entry = entry_to_change(environment);
  if (entry == nullptr) return go_on(environment);
  const std::size_t length = length_of(environment);
  auto** const changed = static_cast<char**>(alloca((length + 1) * sizeof(char*)));
  auto* const text = static_cast<char*>(alloca(preloads_in(*entry).size() + 1));
  const bool has_more = without_guard(preloads_in(*entry), text) != 0;
  char** next = changed;
  for (char* const* each = environment; *each != nullptr; ++each) {
    if (each != entry) *next++ = *each;
    if (each == entry && has_more) *next++ = text;
  }
  *next = nullptr;
  return go_on(changed);
}

int missing() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int execve(const char* path, char* const* arguments,
                                          char* const* environment) noexcept {
  if (found.execve == nullptr) return missing();
  return with_environment(environment, [&](char* const* its) { return found.execve(path, arguments, its); });
}

[[gnu::visibility("default")]] int execv(const char* path, char* const* arguments) noexcept {
  return execve(path, arguments, environ);
}

[[gnu::visibility("default")]] int execvpe(const char* file, char* const* arguments,
                                           char* const* environment) noexcept {
  if (found.execvpe == nullptr) return missing();
  return with_environment(environment, [&](char* const* its) { return found.execvpe(file, arguments, its); });
}

[[gnu::visibility("default")]] int execvp(const char* file, char* const* arguments) noexcept {
  return execvpe(file, arguments, environ);
}

[[gnu::visibility("default")]] int posix_spawn(pid_t* pid, const char* path,
                                               const posix_spawn_file_actions_t* actions,
                                               const posix_spawnattr_t* attributes, char* const* arguments,
                                               char* const* environment) {
  if (found.posix_spawn == nullptr) return ENOSYS;
  return with_environment(environment, [&](char* const* its) {
    return found.posix_spawn(pid, path, actions, attributes, arguments, its);
  });
}

[[gnu::visibility("default")]] int posix_spawnp(pid_t* pid, const char* file,
                                                const posix_spawn_file_actions_t* actions,
                                                const posix_spawnattr_t* attributes, char* const* arguments,
                                                char* const* environment) {
  if (found.posix_spawnp == nullptr) return ENOSYS;
  return with_environment(environment, [&](char* const* its) {
    return found.posix_spawnp(pid, file, actions, attributes, arguments, its);
  });
}
}
