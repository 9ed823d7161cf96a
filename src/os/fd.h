// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace firebreak::os {

/// Owns one file descriptor; closes it at the end. Movable, not copyable.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
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
  int release() { return std::exchange(number_, -1); }
  void reset();

 private:
  int number_ = -1;
};

}  // namespace firebreak::os
