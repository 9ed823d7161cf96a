// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// Says when one file of a directory is written, appears or is replaced (inotify). The file need not be there
/// yet, the directory must.
class FileWatch {
 public:
  struct Changes {
    bool written = false;
    bool replaced = false;  ///< another file has the name now
  };

  static Result<FileWatch> of(const std::string& directory, const std::string& name);

  /// Readable when something happened in the directory.
  const Fd& fd() const { return fd_; }
  /// What happened since the last call.
  Changes read();

 private:
  FileWatch(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Fd fd_;
  std::string name_;
};

}  // namespace firebreak::os
