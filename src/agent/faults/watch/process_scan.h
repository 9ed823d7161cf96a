// SPDX-License-Identifier: Apache-2.0
/// Finds the processes that use the GPU, and the MPS servers, by looking through /proc: nobody has to tell
/// us.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/kernel.h"

namespace firebreak::watch {

/// A process that has a descriptor of UVM.
struct GpuProcess {
  pid_t pid = 0;
  std::string name;    ///< name as the kernel shows it, at most 15 characters
  std::string domain;  ///< the pipe directory of its MPS domain; empty: none, or not told by its environment
};

struct MpsServer {
  pid_t pid = 0;
  std::string domain;         ///< its pipe directory
  std::string log_directory;  ///< directory where it writes its server.log
};

struct ScanOptions {
  /// Names of programs (or arguments of a stand-in) by which a server is known.
  std::vector<std::string> server_words = {"nvidia-cuda-mps-server"};
  /// Programs that hold other processes' descriptors and use no GPU themselves.
  std::vector<std::string> ignored_names = {"firebreakd"};
  pid_t ignored_pid = 0;  ///< ourselves
  /// A variable that says which GPU a process uses, where several software ones share the machine; empty: all
  /// use this one.
  std::string gpu_variable = {};
  std::optional<std::string> gpu_value = {};  ///< the variable's value for a process on this GPU; empty: it
                                              ///< does not have the variable
  /// A look at one process costs 20-100 us: the first round looks at everybody, a later one at this many, the
  /// new ones first.
  std::size_t most_looks = 32;
  /// How many looks long a process counts as new: it may start to use the GPU at any time, most do so early.
  std::uint64_t young_looks = 20;
};

/// True when it has a descriptor of UVM, and is none that watches others.
bool uses_gpu(os::Kernel& kernel, pid_t pid);

/// Stateful, since every process is told of once.
class ProcessScan {
 public:
  struct Found {
    std::vector<GpuProcess> processes;
    std::vector<MpsServer> servers;
  };

  ProcessScan(os::Kernel& kernel, ScanOptions options) : kernel_(kernel), options_(std::move(options)) {}

  /// One round: what was found for the first time. Whatever cannot be read is passed over.
  Found look();
  /// Describes a process, whether or not it uses the GPU (yet).
  GpuProcess describe(pid_t pid);
  /// Empty: that process is no MPS server.
  std::optional<MpsServer> server(pid_t pid);
  /// Processes of other users that we are not allowed to look into, at the last round's end.
  std::size_t refused() const;

 private:
  struct Known {
    std::string started;  ///< a pid with another start is another process
    std::uint64_t looks = 0;
    std::uint64_t last_look = 0;  ///< round of the last look
    bool told = false;            ///< told of as a process or a server; or never to be
    bool refused = false;
  };
  struct Origin {
    std::string started;  ///< start time in the kernel's ticks since the boot
    bool is_kernel_thread = false;
  };

  std::vector<pid_t> candidates();
  void note_who_is_there();
  bool look_at(pid_t pid, Known& known, Found& found);
  bool is_server(pid_t pid);
  bool is_on_this_gpu(pid_t pid);
  std::string domain_of(pid_t pid);
  Origin origin_of(pid_t pid);

  os::Kernel& kernel_;
  ScanOptions options_;
  std::map<pid_t, Known> known_;
  std::uint64_t round_ = 0;
};

}  // namespace firebreak::watch
