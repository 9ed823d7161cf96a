// SPDX-License-Identifier: Apache-2.0
/// A program that uses one GPU: from a library's name to a context.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cuda/context.h"

namespace firebreak::cuda {

/// Owns the driver and a context of its own on the first GPU that this process sees. Movable; must outlive
/// what is made with it.
class FirstGpu {
 public:
  /// `library` as for Driver::open. The context is current on the calling thread.
  static Result<FirstGpu> open(const std::string& library = {});

  const Driver& driver() const { return *driver_; }
  const ContextView& context() const { return context_.view(); }

 private:
  FirstGpu(std::unique_ptr<const Driver> driver, Context context)
      : driver_(std::move(driver)), context_(std::move(context)) {}

  std::unique_ptr<const Driver> driver_;  ///< before the context, which needs it to the end
  Context context_;
};

}  // namespace firebreak::cuda
