// SPDX-License-Identifier: Apache-2.0
/// A program that uses one GPU: from a library's name to a context.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "program/cuda/small_context.h"

namespace firebreak::cuda {

/// Owns the driver and a context of its own on the first GPU that this process sees. Movable; must outlive
/// what is made with it.
class FirstGpu {
 public:
  /// `library` as for Driver::open. The context is current on the calling thread.
  static Result<FirstGpu> open(const std::string& library = {});
  /// The same with the device's primary context, as programs of the CUDA runtime have it.
  static Result<FirstGpu> open_primary(const std::string& library = {});
  /// The same with the context that create_small_context makes.
  static Result<FirstGpu> open_small(unsigned int multiprocessors, const std::string& library = {});

  const Driver& driver() const { return *driver_; }
  const ContextView& context() const { return context_.context.view(); }
  bool is_small() const { return context_.is_small; }

 private:
  template <class MakeContext>
  static Result<FirstGpu> open_with(const std::string& library, MakeContext make_context);
  FirstGpu(std::unique_ptr<const Driver> driver, SmallContext context)
      : driver_(std::move(driver)), context_(std::move(context)) {}

  std::unique_ptr<const Driver> driver_;  ///< This comes before the context, which needs it to the end.
  SmallContext context_;
};

}  // namespace firebreak::cuda
