// SPDX-License-Identifier: Apache-2.0
/// The interface behind which Firebreak asks the Linux kernel and NVIDIA's device nodes: the real one
/// (real_kernel.h), a fake for tests (fake_kernel.h), and the software GPU's, which stands in for the device
/// nodes (lab/softgpu/devices). Sockets, memory and futexes have no fake and live in headers of their own.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/logs.h"
#include "ground/os/standstill.h"

namespace firebreak::os {

/// How a process ended.
struct ExitStatus {
  int exit_code = 0;  ///< valid when `signal` is 0
  int signal = 0;     ///< the signal that ended it, or 0
  bool clean() const { return signal == 0 && exit_code == 0; }
};

/// A process to start. `environment` holds NAME=VALUE additions to this process's own environment.
struct SpawnRequest {
  std::vector<std::string> command;  ///< program (looked up in PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment;
  int standard_input = -1;                     ///< descriptor to use, or -1: /dev/null
  int standard_output = -1;                    ///< descriptor to use, or -1: inherited
  int standard_error = -1;                     ///< descriptor to use, or -1: inherited
  std::vector<std::pair<int, int>> inherited;  ///< (ours, theirs): further descriptors
  bool new_session = false;                    ///< setsid(): signals of our terminal do not reach it
  bool die_with_parent = true;  ///< PR_SET_PDEATHSIG(SIGKILL): nothing is left behind if we are killed
};

/// A descriptor of a process, and what /proc shows it to be, cut off where that is very long.
struct DescriptorLink {
  int number = 0;
  std::string target;
};

/// The descriptors of a process that one look takes.
struct DescriptorLinks {
  std::vector<DescriptorLink> all;  ///< the links, in no order
  int next = 0;                     ///< number from which on there are more; 0: there are none
  bool has_missed_any = false;      ///< some are there and could not be read
  bool is_nothing_there() const { return all.empty() && !has_missed_any; }
};

/// A number in another process, and one in a second.
struct NumberPair {
  int number = -1;
  int other = -1;
};

/// Looks at another process that may last as long as that process likes: Linux waits for a page of its
/// memory, which a file system of its own may have to bring (FUSE) or a thread of its own (userfaultfd), for
/// a lock on its mappings, or for its exec(). Does them here and now (direct_looks) or has them done
/// (ground/os/broker.h). Thread safe. Timeout: the look was not answered, and nothing is known.
class Looks {
 public:
  virtual ~Looks() = default;
  /// The whole of such a file in /proc: environ, cmdline, maps, stat.
  virtual Result<std::string> read_file(const std::string& path) = 0;
  /// Reads so many bytes, at most 4,096, from an address on of such a "mem".
  virtual Result<std::string> read_memory(const std::string& path, std::uint64_t address,
                                          std::size_t size_bytes) = 0;
  /// Does what Kernel::read_links() promises.
  virtual Result<DescriptorLinks> read_links(const std::string& directory, int from) = 0;
  /// The file behind a link in /proc, opened for nothing but to be asked what it is (O_PATH).
  virtual Result<Fd> find(const std::string& path) = 0;
  /// Does what Kernel::pidfd_getfd() promises.
  virtual Result<Fd> duplicate(const Fd& pidfd, int number, const std::string& link) = 0;
  /// True when two processes' descriptors are of the same opening.
  virtual Result<bool> is_same_file(pid_t pid, int number, pid_t other, int other_number) = 0;
  /// The same of many, in their order, in as few questions as there can be.
  virtual std::vector<Result<Fd>> duplicate_all(const Fd& pidfd, std::span<const DescriptorLink> wanted);
  virtual std::vector<Result<bool>> are_same_files(pid_t pid, pid_t other,
                                                   std::span<const NumberPair> numbers);
  /// Does what Kernel::stop_all_but_writers() promises. Unsupported: it is no look of the thread that asks.
  virtual Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe);
};

/// A descriptor of another process, and one of ours.
struct FilePair {
  int remote_number = -1;
  const Fd* own = nullptr;
};

/// File operations that a process which is not root may not do, done by one that is
/// (agent/root/privileged_helper.h). Thread safe; waits for no other process than that.
class RootFiles {
 public:
  virtual ~RootFiles() = default;
  /// Does what Kernel::give_file() promises, of a file of ours.
  virtual Status give_file(const Fd& file, uid_t user) = 0;
  /// Does what Kernel::mark_fifo() promises.
  virtual Status mark_fifo(const Fd& fifo, bool is_marked) = 0;
  /// One of the GPU driver's, to be read without waiting.
  virtual Result<Fd> open_driver_file(const std::string& name) = 0;
};

/// Folder of the driver's files that are root's alone.
inline constexpr std::string_view driver_folder = "/proc/driver/nvidia-uvm/";

/// Thread safe. Every call fails with the errno's text as message; EACCES and EPERM become PermissionDenied,
/// ENOENT and ESRCH NotFound, ENOSPC, ENOMEM, EMFILE ResourceExhausted, EAGAIN Unavailable, EPIPE Protocol
/// (for /dev/kmsg: records were overwritten before they were read), ETIMEDOUT Timeout, the rest Internal.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Files and device nodes.
  /// Timeout: it is one of a process that does not let itself be looked at.
  virtual Result<Fd> open(const std::string& path, int flags) = 0;
  /// Bytes read; 0 at the end; Unavailable when a non-blocking descriptor has nothing (EAGAIN).
  virtual Result<std::size_t> read(const Fd& fd, std::span<std::byte> into) = 0;
  virtual Result<std::string> read_link(const std::string& path) = 0;
  /// Reads what such a folder of descriptors in /proc shows, from number `from` on: as many as a look takes
  /// (ground/os/looks.h). Timeout: as above.
  virtual Result<DescriptorLinks> read_links(const std::string& directory, int from);
  /// Names in a directory, without "." and "..".
  virtual Result<std::vector<std::string>> list_directory(const std::string& path) = 0;
  /// The whole of a small file (procfs, a pid file). Timeout: as above.
  virtual Result<std::string> read_file(const std::string& path) = 0;
  /// The whole of a file in /proc that Linux makes of a process's memory: environ, cmdline, maps. Timeout:
  /// the process does not let itself be looked at.
  virtual Result<std::string> read_memory_file(const std::string& path) { return read_file(path); }
  /// Reads so many bytes of a process's memory (its "mem" in /proc). Timeout: as above.
  virtual Result<std::string> read_memory(const std::string& path, std::uint64_t /*address*/,
                                          std::size_t /*size_bytes*/) {
    return fail(ErrorCode::NotFound, "no memory is seen in " + path);
  }
  /// Hands looks that may last to `looks`, from now on.
  virtual void look_by(std::shared_ptr<Looks> /*looks*/) {}
  virtual Status ioctl(const Fd& fd, unsigned long request, void* argument) = 0;
  /// Closes a descriptor. The last one of a device node may take as long as the driver waits for the GPU.
  virtual void close(Fd fd) { fd.reset(); }
  /// These do what the functions of these names do (ground/os/file.h).
  virtual Status give_file(const Fd& file, uid_t user);
  virtual Status mark_fifo(const Fd& fifo, bool is_marked);
  /// Hands these two functions, and the opening of the driver's files, to `files` from now on. Called before
  /// another thread uses it.
  virtual void files_by(std::shared_ptr<RootFiles> /*files*/) {}
  /// The path that /proc/PID/fd shows for a process's UVM descriptor: "/dev/nvidia-uvm" on a real machine.
  virtual std::string uvm_link_target() const { return "/dev/nvidia-uvm"; }
  /// The same for those of NVIDIA's resource manager.
  virtual std::string rm_link_target() const { return "/dev/nvidiactl"; }
  /// Returns which GPU driver is loaded, in its own words: one line, another for another version.
  virtual Result<std::string> gpu_driver();
  /// The GPUs that this machine has, by the 16 bytes that name one.
  using GpuUuid = std::array<std::uint8_t, 16>;
  virtual Result<std::vector<GpuUuid>> gpu_uuids();
  /// Returns a bell that says at once that /dev/kmsg has something. Unsupported where its poll() is prompt,
  /// as a stand-in's is.
  virtual Result<KernelLogBell> kernel_log_bell() {
    return fail(ErrorCode::Unsupported, "this kernel log has no bell");
  }
  /// Makes a bell that was opened beforehand, or the reason why it could not be, the next answer to
  /// kernel_log_bell().
  virtual void use_bell(Result<KernelLogBell> /*bell*/) {}

  // Processes.
  virtual Result<pid_t> spawn(const SpawnRequest& request) = 0;
  virtual Result<Fd> pidfd_open(pid_t pid) = 0;
  /// A duplicate of another process's descriptor, which /proc shows as `link`: a device, a memory file or a
  /// socket. NotFound: it is something else, whatever it is called. Timeout: the process does not let itself
  /// be looked at.
  virtual Result<Fd> pidfd_getfd(const Fd& pidfd, int remote_number, const std::string& link) = 0;
  /// True when that descriptor of a process is (a duplicate of) ours. Unsupported: this kernel cannot say;
  /// Timeout: as above.
  virtual Result<bool> is_same_file(pid_t pid, int remote_number, const Fd& fd) = 0;
  /// The same of many, in their order: where a helper is asked, it is not asked for each.
  virtual std::vector<Result<Fd>> pidfd_getfds(const Fd& pidfd, std::span<const DescriptorLink> wanted);
  virtual std::vector<Result<bool>> are_same_files(pid_t pid, std::span<const FilePair> files);
  virtual Status send_signal(const Fd& pidfd, int signal) = 0;
  /// Has all threads of that process stand still but for those that wait for room in `pipe`, whose reading
  /// end that is: they go on. Waits up to 0.3 s. After any error but NotFound and Unsupported the process has
  /// to be killed: some of its threads may stand still. PermissionDenied: it is not ours, or somebody traces
  /// it already (a debugger). Timeout: it is in execve(2), for one. NotFound: there is no such process.
  /// Unsupported: nobody has looks done for us.
  virtual Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe) = 0;
  /// Reaps a child; empty while it runs.
  virtual Result<std::optional<ExitStatus>> try_wait(pid_t pid) = 0;

  // Waiting.
  /// Indices of the descriptors that are readable or hung up; empty after `timeout` (negative: for ever).
  virtual Result<std::vector<std::size_t>> poll(std::span<const int> fds,
                                                std::chrono::milliseconds timeout) = 0;
};

}  // namespace firebreak::os
