// SPDX-License-Identifier: Apache-2.0
/// The process that this code runs in: its program, its environment, its threads, its libraries.
#pragma once

#include <sys/types.h>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::os {

// --- self
// What a process may ask about itself.

pid_t own_pid();
bool is_root();

/// The absolute path of the running program.
Result<std::string> executable_path();

/// The value of an environment variable, or empty. Not safe beside setenv() in another thread.
std::optional<std::string> environment_variable(const std::string& name);
/// True when a variable is set whose name satisfies the predicate. Not safe beside setenv() in another
/// thread.
bool has_environment_variable(const std::function<bool(std::string_view name)>& is_it);

/// NAME=VALUE of all but those. Not safe beside setenv() in another thread.
std::vector<std::string> environment_but_for(const std::function<bool(std::string_view name)>& is_it);

/// Variables of our own environment for as long as the object lives; then they are as they were before. For
/// libraries that read them in this process. Not safe while another thread reads or sets any.
class EnvironmentScope {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  explicit EnvironmentScope(const Variables& variables);
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;
  ~EnvironmentScope();

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

/// The files that a program's name may mean, in the order of PATH; one with a slash means itself alone.
std::vector<std::string> files_called(const std::string& program);

/// Returns where PATH finds an executable `program`; a name with a slash is only checked. Empty when there is
/// none.
std::optional<std::string> find_program(const std::string& program);

/// exit(): also runs what libraries left to be done at the end. For faults on purpose alone.
[[noreturn]] void leave_process(int status);

/// Restores what Linux does of itself for the signal, whoever in this process had other plans. Used for
/// faults on purpose alone.
void forget_signal_handler(int signal);

/// True when somebody looks at what is written to descriptor `number`.
bool is_terminal(int number);

// --- library

/// A symbol of a shared library that is loaded for it and never unloaded. A name without a slash is looked
/// for as the calling library's or program's run path and the system say. NotFound: no such library, or no
/// such symbol.
Result<void*> load_symbol(const std::string& library, const char* symbol);

/// The path of the shared library or program that a function is part of. NotFound: of none.
Result<std::string> library_of(const void* function);

/// True when all of those bytes are part of a program's or shared library's file, as it is loaded, and nobody
/// may write there. They are there until the library is unloaded.
bool is_constant_in_library(const void* begin, std::size_t size_bytes);

/// The path, in the folder of the shared library or program that this code is part of, of its neighbour
/// `name`. A run path would do where nobody stands between us and dlopen(); the sanitizers do. Just the name
/// where our own path is not known.
std::string beside_this_library(const std::string& name);

/// A copy of a shared library that this process has for itself: with data of its own, whoever else has loaded
/// the library. Loaded for good. Constant; any thread may ask for a symbol.
class PrivateLibrary {
 public:
  struct Origin {
    std::string path;          ///< path of the copy
    std::string name;          ///< name of the copied library, without its folder
    unsigned int copy_number;  ///< number as given to load()
  };
  /// Returns the library in whose copy that address lies; empty: in none.
  static std::optional<Origin> origin_of(const void* address);
  /// Copy number `copy` of the library, of those that this process has. The copies are files of this user's
  /// on a tmpfs (/dev/shm), once for all processes: code that several have loaded takes memory once. Those of
  /// the library as it was before go an hour after they were made, when another copy is.
  /// NotFound: no such library. ResourceExhausted: no room.
  static Result<PrivateLibrary> load(const std::string& library, unsigned int copy);
  /// Null: it has none of that name.
  void* symbol(const char* name) const;
  /// Returns the handle that dlopen() gave.
  void* handle() const { return handle_; }

 private:
  explicit PrivateLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

// --- threads

/// A thread of our own program. ResourceExhausted: there is no thread left.
Result<std::thread> start_thread(std::function<void()> run);

// --- background thread
// Threads of a library inside somebody else's program, which must not notice them.

/// A thread that gets none of the process's signals, and shows by that name (at most 15 characters).
/// ResourceExhausted: there is no thread left.
Result<std::thread> start_background_thread(const std::string& name, std::function<void()> run);

/// The same of one that nobody waits for: it outlives whoever started it, so what it uses is its own.
Status start_detached_thread(const std::string& name, std::function<void()> run);

/// Runs `action` in every child of fork() from now on, before fork() returns there.
void run_in_children(void (*action)());

/// `action` runs when the process ends by exit() or by main's return; before what was registered earlier.
void run_at_exit(void (*action)());

// --- scheduling

/// Lets the calling thread run as soon as it is woken, also where all others spin for their GPU: before all
/// ordinary threads (SCHED_FIFO, the lowest priority of that class), or, where that is not allowed, in turns
/// of 0.1 ms, which Linux 6.12 and later schedule first. Threads and processes that it starts are ordinary
/// again. For threads that sleep nearly always.
///
/// Beside a thread that spins on the same core, of 300 wake-ups the slowest 1 % took 2.7 ms at least as an
/// ordinary thread, 0.12 ms in short turns and 0.07 ms under SCHED_FIFO (Linux 6.18, 250 ticks a second).
/// Unsupported: the kernel offers neither.
Status run_as_soon_as_woken();

/// The same in such turns alone, which take nothing from others: for threads that may have much to do, and
/// for which one that runs as soon as it is woken waits.
Status run_in_short_turns();

// --- random

/// 32 hexadecimal digits that nobody can guess, from the kernel.
Result<std::string> random_token();

}  // namespace firebreak::os
