// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// What one process at a time holds, of those that share a file: Linux takes it back from one that dies. By
/// flock() on a description of our own, which others of the same file do not share. For one thread.
class Baton {
 public:
  /// `shared` is any descriptor of the file; it is opened anew.
  static Result<Baton> of(int shared);

  /// Timeout: another process holds it for so long.
  Status take(Milliseconds timeout);
  void give_back();

 private:
  explicit Baton(Fd own) : own_(std::move(own)) {}

  Fd own_;
};

}  // namespace firebreak::os
