// SPDX-License-Identifier: Apache-2.0
/// Log files that do not grow without bound, and the kernel's log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/memory.h"

namespace firebreak::os {

// --- log rotation
// Bounds a log that other programs append to and never reopen.

struct LogLimits {
  std::uint64_t size_bytes = std::uint64_t{16} << 20;  ///< size of the log itself, more or less
  std::size_t old_files = 4;                           ///< PATH.1 is the youngest
};

/// Moves the older part of a log that exceeds the limit, whole lines, to PATH.1 (PATH.1 to PATH.2, and so on)
/// and gives the blocks of that part back: the file keeps its length and begins with a hole. Writers that
/// append go on undisturbed, and a reader at a position is still there: no line is lost or comes twice.
/// Neither renaming (the writer goes with the file) nor cutting off at zero (what is written between the copy
/// and the cut is lost) can promise that. A reader has to have read the older part: the youngest quarter of
/// the limit stays for one that is behind. Where the filesystem knows no holes (Unsupported) nothing is done.
/// Returns whether anything was. Writers must append (O_APPEND); one caller at a time.
Result<bool> rotate_in_place(const std::string& path, const LogLimits& limits);

/// The log becomes PATH.1, for when nobody writes to it: the next writer begins a new one. Fine when there is
/// none, or it is empty.
Status rotate_away(const std::string& path, const LogLimits& limits);

/// The last bytes of a file, at most `size_bytes`.
Result<std::string> read_tail(const std::string& path, std::size_t size_bytes);

// --- kernel log bell
// Rings as soon as the kernel logs a message. poll() on /dev/kmsg does not: it wakes with the timer tick, up
// to 4 ms later (measured on an H100's host and again here; the kernel defers that wake-up on purpose). The
// bell is the trace point printk:console, whose wake-up is not deferred: 0.07-0.19 ms from the writer to the
// reader on a virtual machine with two cores. It costs nothing while nothing is logged.

/// One descriptor a processor. A message may become readable a moment after the bell.
class KernelLogBell {
 public:
  /// PermissionDenied without CAP_PERFMON, Unsupported where the kernel has no such trace point.
  static Result<KernelLogBell> open();
  /// A bell that rings when `fd` is readable; for stand-ins.
  explicit KernelLogBell(Fd fd) { chimes_.push_back({Mapping(), std::move(fd)}); }

  /// Readable when it rang; what waits there is eight bytes that are to be read.
  std::vector<const Fd*> fds() const;

 private:
  struct Chime {
    Mapping samples;  ///< the kernel wakes nobody for a trace point without a buffer
    Fd fd;
  };
  KernelLogBell() = default;

  std::vector<Chime> chimes_;
};

}  // namespace firebreak::os
