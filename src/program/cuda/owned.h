// SPDX-License-Identifier: Apache-2.0
/// The one owning handle that every type of this folder is made of.
#pragma once

#include <utility>

#include "program/cuda/driver.h"

namespace firebreak::cuda {

/// Owns `Handle` and frees it at the end with `Free{}(driver, handle)`, whose errors are ignored: after a
/// fault the driver answers every call with that fault and has freed everything already. Movable; empty after
/// a move.
template <class Handle, class Free>
class Owned {
 public:
  Owned(const Driver& driver, Handle handle) : driver_(&driver), handle_(std::move(handle)) {}
  Owned(Owned&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)), handle_(std::move(other.handle_)) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      driver_ = std::exchange(other.driver_, nullptr);
      handle_ = std::move(other.handle_);
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  const Driver& driver() const { return *driver_; }
  const Handle& get() const { return handle_; }
  bool empty() const { return driver_ == nullptr; }
  /// It is the caller's to free from now on.
  Handle release() {
    driver_ = nullptr;
    return std::move(handle_);
  }
  void reset() {
    if (driver_ != nullptr) Free{}(*std::exchange(driver_, nullptr), handle_);
  }

 private:
  const Driver* driver_;
  Handle handle_;
};

}  // namespace firebreak::cuda
