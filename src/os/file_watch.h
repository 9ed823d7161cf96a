// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// Says when a file is written (inotify).
class FileWatch {
 public:
  struct Changes {
    bool written = false;
    bool replaced = false;  ///< another file has the name now
  };

  /// The file of a directory that has this name, also when it appears or is replaced. It need not be there
  /// yet, the directory must.
  static Result<FileWatch> of(const std::string& directory, const std::string& name);
  /// This very file, whatever its name becomes. `file` may be closed afterwards.
  static Result<FileWatch> of(const Fd& file);

  /// Readable when something happened.
  const Fd& fd() const { return fd_; }
  /// What happened since the last call.
  Changes read();

 private:
  FileWatch(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Fd fd_;
  std::string name_;  ///< empty: the file itself is watched
};

}  // namespace firebreak::os
