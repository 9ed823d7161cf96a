// SPDX-License-Identifier: Apache-2.0
/// What starts programs, in front of the C library's: a program that has another root by now, or other
/// mounts, may not have this library there, and the dynamic linker would say so in each program that it
/// starts.
#include <alloca.h>
#include <dlfcn.h>
#include <spawn.h>
#include <unistd.h>
#include <wordexp.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "program/guard/preload/passing_on.h"

namespace {

using firebreak::guard::has_guard;
using firebreak::guard::preloads_in;
using firebreak::guard::without_guard;

/// All that is found before, when the library is loaded: exec may follow vfork().
struct Found {
  decltype(&::execv) execv = nullptr;
  decltype(&::execve) execve = nullptr;
  decltype(&::execvp) execvp = nullptr;
  decltype(&::execvpe) execvpe = nullptr;
  decltype(&::execveat) execveat = nullptr;
  decltype(&::fexecve) fexecve = nullptr;
  decltype(&::posix_spawn) posix_spawn = nullptr;
  decltype(&::posix_spawnp) posix_spawnp = nullptr;
  decltype(&::system) system = nullptr;
  decltype(&::popen) popen = nullptr;
  decltype(&::wordexp) wordexp = nullptr;
  // What the C library itself calls in its other functions, whatever stands in front of it.
  decltype(&::execve) inner_execve = nullptr;
  decltype(&::execvpe) inner_execvpe = nullptr;
  const char* own_file = nullptr;
};
constinit Found found;

bool is_own(void* function) {
  Dl_info its{};
  return ::dladdr(function, &its) != 0 && its.dli_fname == found.own_file;
}

/// The next one behind this library. A dlsym() of somebody's who stands in front of us, and passes on what it
/// is asked, looks behind itself: it finds ours. What is behind that is the C library's.
template <class Function>
void find(Function& into, const char* name, void* c_library) {
  void* next = ::dlsym(RTLD_NEXT, name);
  if (next != nullptr && is_own(next)) next = c_library == nullptr ? nullptr : ::dlsym(c_library, name);
  into = reinterpret_cast<Function>(next);
}

/// Before all other constructors of this library: what they start goes this way, too.
[[gnu::constructor(101)]] void find_all() {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&find_all), &own) != 0) found.own_file = own.dli_fname;
  void* const c_library = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);  // it is there until the end
  find(found.execv, "execv", c_library);
  find(found.execve, "execve", c_library);
  find(found.execvp, "execvp", c_library);
  find(found.execvpe, "execvpe", c_library);
  find(found.execveat, "execveat", c_library);
  find(found.fexecve, "fexecve", c_library);
  find(found.posix_spawn, "posix_spawn", c_library);
  find(found.posix_spawnp, "posix_spawnp", c_library);
  find(found.system, "system", c_library);
  find(found.popen, "popen", c_library);
  find(found.wordexp, "wordexp", c_library);
  if (c_library != nullptr) {
    found.inner_execve = reinterpret_cast<decltype(&::execve)>(::dlsym(c_library, "execve"));
    found.inner_execvpe = reinterpret_cast<decltype(&::execvpe)>(::dlsym(c_library, "execvpe"));
  }
  // An old C library has no execveat(), and the program would hear of that.
  (void)::dlerror();
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

std::size_t length_of(char* const* list) {
  std::size_t length = 0;
  while (list[length] != nullptr) ++length;
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

/// The C library takes the process's own environment for what it starts by these: there the library is no
/// longer asked for.
void change_own_environment() {
  char* const* const entry = entry_to_change(environ);
  if (entry == nullptr) return;
  const int before = errno;
  auto* const text = static_cast<char*>(alloca(preloads_in(*entry).size() + 1));
  constexpr const char* variable = "LD_PRELOAD";
  if (without_guard(preloads_in(*entry), text) == 0)
    ::unsetenv(variable);
  else
    ::setenv(variable, text + sizeof "LD_PRELOAD=" - 1, 1);
  errno = before;
}

int missing() {
  errno = ENOSYS;
  return -1;
}

int become(const char* path, char* const* arguments, char* const* environment) {
  if (found.inner_execve == nullptr) return missing();
  return with_environment(environment,
                          [&](char* const* its) { return found.inner_execve(path, arguments, its); });
}

int become_in_path(const char* file, char* const* arguments, char* const* environment) {
  if (found.inner_execvpe == nullptr) return missing();
  return with_environment(environment,
                          [&](char* const* its) { return found.inner_execvpe(file, arguments, its); });
}

/// Runs `go_on` with the arguments of a call of execl(), and with what follows them.
template <class GoOn>
int with_list(const char* first, std::va_list& others, const GoOn& go_on) {
  std::va_list counted;
  va_copy(counted, others);
  std::size_t count = 1;
  for (const char* each = first; each != nullptr; each = va_arg(counted, const char*)) ++count;
  va_end(counted);
  auto** const arguments = static_cast<char**>(alloca(count * sizeof(char*)));
  std::size_t next = 0;
  for (const char* each = first; each != nullptr; each = va_arg(others, const char*))
    arguments[next++] = const_cast<char*>(each);
  arguments[next] = nullptr;
  return go_on(arguments);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  if (found.execve == nullptr) return missing();
  return with_environment(environment, [&](char* const* its) { return found.execve(path, arguments, its); });
}

int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  if (found.execvpe == nullptr) return missing();
  return with_environment(environment, [&](char* const* its) { return found.execvpe(file, arguments, its); });
}

int execveat(int folder, const char* path, char* const* arguments, char* const* environment,
             int flags) noexcept {
  if (found.execveat == nullptr) return missing();
  return with_environment(
      environment, [&](char* const* its) { return found.execveat(folder, path, arguments, its, flags); });
}

int fexecve(int file, char* const* arguments, char* const* environment) noexcept {
  if (found.fexecve == nullptr) return missing();
  return with_environment(environment, [&](char* const* its) { return found.fexecve(file, arguments, its); });
}

int execv(const char* path, char* const* arguments) noexcept {
  if (entry_to_change(environ) != nullptr || found.execv == nullptr) return become(path, arguments, environ);
  return found.execv(path, arguments);
}

int execvp(const char* file, char* const* arguments) noexcept {
  if (entry_to_change(environ) != nullptr || found.execvp == nullptr)
    return become_in_path(file, arguments, environ);
  return found.execvp(file, arguments);
}

int execl(const char* path, const char* argument, ...) noexcept {
  std::va_list others;
  va_start(others, argument);
  const int result =
      with_list(argument, others, [&](char* const* arguments) { return become(path, arguments, environ); });
  va_end(others);
  return result;
}

int execlp(const char* file, const char* argument, ...) noexcept {
  std::va_list others;
  va_start(others, argument);
  const int result = with_list(
      argument, others, [&](char* const* arguments) { return become_in_path(file, arguments, environ); });
  va_end(others);
  return result;
}

int execle(const char* path, const char* argument, ...) noexcept {
  std::va_list others;
  va_start(others, argument);
  const int result = with_list(argument, others, [&](char* const* arguments) {
    return become(path, arguments, va_arg(others, char* const*));
  });
  va_end(others);
  return result;
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  if (found.posix_spawn == nullptr) return ENOSYS;
  return with_environment(environment, [&](char* const* its) {
    return found.posix_spawn(pid, path, actions, attributes, arguments, its);
  });
}

int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  if (found.posix_spawnp == nullptr) return ENOSYS;
  return with_environment(environment, [&](char* const* its) {
    return found.posix_spawnp(pid, file, actions, attributes, arguments, its);
  });
}

int system(const char* command) {
  change_own_environment();
  return found.system == nullptr ? missing() : found.system(command);
}

FILE* popen(const char* command, const char* mode) {
  change_own_environment();
  if (found.popen != nullptr) return found.popen(command, mode);
  (void)missing();
  return nullptr;
}

int wordexp(const char* words, wordexp_t* into, int flags) {
  change_own_environment();
  return found.wordexp == nullptr ? WRDE_NOSPACE : found.wordexp(words, into, flags);
}
}
#pragma GCC visibility pop
