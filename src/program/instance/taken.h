// SPDX-License-Identifier: Apache-2.0
/// The things that one copy of a driver has taken from its process, by what they are: known when it happens,
/// so that nothing is found by comparing before with after. imports.cpp has a row for each function that
/// takes something.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "program/instance/arena.h"
#include "program/instance/threads.h"

namespace firebreak::instance {

/// Ranges of addresses that a copy has mapped. Thread safe.
class TakenMappings {
 public:
  void add(std::uintptr_t begin, std::size_t size_bytes);
  void remove(std::uintptr_t begin, std::size_t size_bytes);
  std::size_t count() const;
  std::size_t size_bytes() const;
  /// Unmaps all of them.
  void give_back();

 private:
  void cut(std::uintptr_t begin, std::uintptr_t end);

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::uintptr_t> ends_;  ///< ends by begin
};

/// Descriptors that a copy has opened, and streams of the C library's on them. Thread safe.
class TakenDescriptors {
 public:
  /// Negative numbers are none.
  void add(int number);
  void remove(int number);
  void add_stream(std::FILE* stream);
  void remove_stream(std::FILE* stream);
  /// Returns those of the device of that name, or of what the software GPU has in its place.
  std::vector<int> of_file(const std::string& file) const;
  std::size_t count() const;
  /// Closes all of them: channels first, so that they are gone soonest. A number that is another file's by
  /// now is somebody else's: whoever closed it did not ask.
  void give_back();

 private:
  struct File {
    dev_t device = 0;
    ino_t inode = 0;
    dev_t special = 0;
    bool operator==(const File&) const = default;
  };
  static std::optional<File> file_of(int number);
  static int order_of(int number);

  mutable std::mutex mutex_;
  std::map<int, File> open_;
  std::set<std::FILE*> streams_;
};

/// Values that threads have for themselves. What a thread's end is to do runs while the copy is there. Thread
/// safe.
class TakenKeys {
 public:
  /// These do what pthread_key_create and pthread_key_delete do.
  int add(pthread_key_t* key, void (*destroy)(void*));
  int remove(pthread_key_t key);
  /// Lets nothing run at a thread's end from now on. False: something runs still when that time is over.
  bool give_back(Nanoseconds longest);

 private:
  std::mutex mutex_;
  std::vector<std::pair<pthread_key_t, std::size_t>> keys_;  ///< keys with the place of what is to be done
};

/// The actions that a copy wants done at the process's end, in the order of asking. Thread safe.
class TakenExits {
 public:
  void add(std::function<void()> action);
  /// The last one first. Each once.
  void run();
  void give_back();

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> actions_;
};

/// The answers that a copy gets in place of what its process has.
struct Answers {
  /// Variables of the environment.
  std::vector<std::pair<std::string, std::string>> variables;
  /// Suffix of the name of the socket by which a driver says that it is there.
  std::string socket_suffix;
};

/// A copy of a driver and everything of it.
struct Taken {
  Arena memory;
  TakenMappings mappings;
  TakenDescriptors descriptors;
  Threads threads;
  TakenKeys keys;
  TakenExits exits;
  Answers answers;
  pid_t process = 0;  ///< a child of fork() has nothing of it
  /// The driver's library, as dlopen() gave it, and that of its debugger, which it may load; null: not yet.
  void* library = nullptr;
  std::atomic<void*> debugger{nullptr};
  std::function<void*(const char* file)> load_debugger;
  std::atomic<int> references{0};  ///< references of the driver to its own library, by dlopen()
  /// `environ` of its own.
  std::vector<std::string> environment;
  std::vector<char*> environment_words;
};

/// Largest number that a process can have at once.
inline constexpr std::size_t places_max = 16;

/// Returns what the copy at that place has taken; while it is loaded.
Taken& taken_at(std::size_t place);
/// True when there is one at that place.
bool is_taken(std::size_t place);

/// A place that nobody has, for a copy that is loaded next. Null: all are taken.
std::optional<std::size_t> take_place();
/// Nothing of the copy is there any more.
void give_place(std::size_t place);

}  // namespace firebreak::instance
