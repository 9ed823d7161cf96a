// SPDX-License-Identifier: Apache-2.0
/// The mark of a process that has a driver: libcuda binds an abstract socket with the process's number in its
/// name, and does not start where somebody has bound it (measured on an H100: a second copy of the library
/// answers 304).
#pragma once

#include "ground/os/fd.h"
#include "softgpu/driver/answer.h"

namespace firebreak::softgpu::driver {

/// The presence lasts as long as this lives.
class Presence {
 public:
  /// OPERATING_SYSTEM: another driver of this process is there.
  static Answer<Presence> create();

 private:
  explicit Presence(os::Fd socket) : socket_(std::move(socket)) {}
  os::Fd socket_;
};

}  // namespace firebreak::softgpu::driver
