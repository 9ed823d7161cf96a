// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cuda/context.h"
#include "cuda/module.h"
#include "cuda/stream.h"

namespace firebreak::workloads {

/// The first GPU with one context, one stream and one module of kernels. The context is current on the thread
/// that opened it, and only that thread uses it.
class Gpu {
 public:
  /// `library` as for cuda::Driver::open.
  static Result<Gpu> open(std::string_view ptx, const std::string& library = {});

  const cuda::Driver& driver() const { return *driver_; }
  const cuda::Stream& stream() const { return stream_; }
  const cuda::Module& module() const { return module_; }

 private:
  Gpu(std::unique_ptr<const cuda::Driver> driver, cuda::Context context, cuda::Stream stream,
      cuda::Module module)
      : driver_(std::move(driver)),
        context_(std::move(context)),
        stream_(std::move(stream)),
        module_(std::move(module)) {}

  // Declared in the order of who needs whom: freed the other way round.
  std::unique_ptr<const cuda::Driver> driver_;
  cuda::Context context_;
  cuda::Stream stream_;
  cuda::Module module_;
};

}  // namespace firebreak::workloads
