// SPDX-License-Identifier: Apache-2.0
/// A private copy of the program's driver, which owns all that it takes and can be thrown away whole. The
/// file is byte for byte the user's own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/library_behind.h"
#include "program/instance/taken.h"

namespace firebreak::instance {

/// How much a copy has at this moment.
struct TakenCounts {
  std::size_t mappings = 0;
  std::size_t mapped_bytes = 0;
  std::size_t descriptors = 0;
  std::size_t threads = 0;
};

/// How a throw ended, and how long its parts took.
struct Thrown {
  /// All descriptors are closed: whoever has no other descriptor of the same files knows that the GPU has
  /// torn the copy's channels down.
  bool is_fence = false;
  /// Nothing of it is left. Otherwise some thread of its own holds something of the process's, or is inside
  /// the program's code: its pages stay until that has ended.
  bool is_gone = false;
  Nanoseconds threads{0};
  Nanoseconds mappings{0};
  Nanoseconds descriptors{0};
  Nanoseconds rest{0};
};

/// Used by one thread at a time, but for symbol().
class DriverCopy {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;

  /// Loads one. Its imports are bound before its constructors run. `variables`: what it finds in its
  /// environment in place of the process's. ResourceExhausted: there are as many as there may be.
  /// Unsupported: Linux forbids this process what a throw needs.
  static Result<std::unique_ptr<DriverCopy>> load(const std::string& library, Variables variables);
  /// Leaves what was not thrown away, for good.
  ~DriverCopy();
  DriverCopy(const DriverCopy&) = delete;
  DriverCopy& operator=(const DriverCopy&) = delete;

  /// Null: it has none of that name.
  void* symbol(const char* name) const { return library_.symbol(name); }
  /// Sets what it finds in its environment from now on. It asks for none meanwhile.
  void set_variables(Variables variables) { taken_.answers.variables = std::move(variables); }
  TakenCounts counts() const;
  /// Its descriptors of the device of that name.
  std::vector<int> descriptors_of(const std::string& device) const {
    return taken_.descriptors.of_file(device);
  }
  /// Lets go of a descriptor that it has opened and given to somebody: that is not its own any more.
  void let_go(int descriptor) { taken_.descriptors.remove(descriptor); }
  /// A thread of ours that is inside the copy, and ends with it as its own do. ResourceExhausted: there is no
  /// thread.
  Status start_thread(std::function<void()> run);
  /// Loads what it needs for a core dump, which takes it some 40 ms else, at the worst of moments. Again:
  /// nothing happens.
  void prepare_dump(const char* debugger = "libcudadebugger.so.1") { (void)load_debugger(debugger); }
  /// Runs what it wants done at the process's end. Once.
  void run_exits();

  /// Whatever state it is in. No thread of the program's is inside one of its calls. Runs none of its code
  /// and waits for nothing that the GPU does, but in close(). Again, where it was not gone.
  Thrown throw_away();

 private:
  DriverCopy(std::size_t place, Taken& taken, os::LibraryBehind library)
      : place_(place), taken_(taken), library_(std::move(library)) {}
  void* load_debugger(const char* file);

  std::size_t place_;
  Taken& taken_;
  os::LibraryBehind library_;
  std::optional<os::LibraryBehind> debugger_;
  std::mutex debugger_mutex_;
  bool is_gone_ = false;
};

}  // namespace firebreak::instance
