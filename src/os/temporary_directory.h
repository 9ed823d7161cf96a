// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace firebreak::os {

/// A private directory (mode 0700) with a path short enough for sockets; removed with all it holds at the
/// end.
class TemporaryDirectory {
 public:
  /// Made under `parent`; empty: TMPDIR where that is short, else /tmp.
  static Result<TemporaryDirectory> create(const std::string& parent = {});

  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { remove(); }

  const std::string& path() const { return path_; }
  /// Takes it away now; what cannot be removed stays.
  void remove();

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

/// Makes one directory of mode 0700, and its parents; fine when it is there already.
Status make_directories(const std::string& path);

/// Takes away all that a directory holds, and leaves the directory; fine when it is not there. Follows no
/// links.
Status clear_directory(const std::string& path);

}  // namespace firebreak::os
