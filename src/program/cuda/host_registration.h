// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// Lets the GPU use host memory that somebody else owns, a shared mapping say; page-locked as long as this
/// lives.
class HostRegistration {
 public:
  /// `memory` begins on a page and is a whole number of pages; it must outlive the registration.
  static Result<HostRegistration> create(const Driver& driver, std::span<std::byte> memory);

  /// The GPU sees it there.
  CUdeviceptr device_address() const { return registration_.get().device_address; }

 private:
  struct Registration {
    void* host = nullptr;
    CUdeviceptr device_address = 0;
  };
  struct Unregister {
    void operator()(const Driver& driver, const Registration& registration) const {
      driver->cuMemHostUnregister(registration.host);
    }
  };
  HostRegistration(const Driver& driver, Registration registration) : registration_(driver, registration) {}

  Owned<Registration, Unregister> registration_;
};

}  // namespace firebreak::cuda
