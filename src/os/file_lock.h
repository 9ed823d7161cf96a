// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// A file that one process at a time holds, with its process id in it. Linux gives it back when the holder is
/// gone, however it went; the file itself stays, so that nobody locks one that is about to vanish.
class FileLock {
 public:
  /// Makes the file where it is missing. Unavailable, with the holder's process id in the message, when
  /// somebody holds it (also another object of this process). Never waits.
  static Result<FileLock> take(const std::string& path);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}

  Fd fd_;
};

}  // namespace firebreak::os
