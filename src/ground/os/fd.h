// SPDX-License-Identifier: Apache-2.0
/// Descriptors that close themselves, and what errno says.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ground/base/result.h"

namespace firebreak::os {

// --- fd

class Closer;

/// Owns one file descriptor; closes it at the end. Movable, not copyable.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)), closer_(std::move(other.closer_)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
      closer_ = std::move(other.closer_);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  /// The number, still owned by this object; -1 when empty.
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  /// Gives the number away; the caller closes it.
  int release() {
    closer_.reset();
    return std::exchange(number_, -1);
  }
  void reset();

  /// Whoever owns it from now on waits for no close(): the closer does (ground/os/closer.h). Null: nobody
  /// does that for it.
  void close_by(std::shared_ptr<Closer> closer) { closer_ = std::move(closer); }
  const std::shared_ptr<Closer>& closer() const { return closer_; }

 private:
  int number_ = -1;
  std::shared_ptr<Closer> closer_;
};

// --- duplicate

/// Makes another descriptor of the same open file, close-on-exec. ResourceExhausted: there is none left.
Result<Fd> duplicate(int descriptor);

// --- errno error
// From errno to the project's errors, the same way everywhere.

/// EACCES and EPERM become PermissionDenied, ENOENT and ESRCH NotFound, ENOSPC, EDQUOT, ENOMEM, EMFILE and
/// ENFILE ResourceExhausted, EAGAIN Unavailable, EPIPE Protocol, ETIMEDOUT Timeout, the rest Internal.
ErrorCode code_of_errno(int number);

/// "DOING: the errno's text"; where a disk is full or may not be written, with what to do.
tl::unexpected<Error> fail_errno(const std::string& doing, int number);

}  // namespace firebreak::os
