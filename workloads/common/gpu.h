// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cuda/first_gpu.h"
#include "cuda/module.h"
#include "cuda/stream.h"

namespace firebreak::workloads {

/// The first GPU with one context, one stream and one module of kernels. The context is current on the thread
/// that opened it, and only that thread uses it.
class Gpu {
 public:
  /// `library` as for cuda::Driver::open.
  static Result<Gpu> open(std::string_view ptx, const std::string& library = {});

  const cuda::Driver& driver() const { return gpu_.driver(); }
  const cuda::Stream& stream() const { return stream_; }
  const cuda::Module& module() const { return module_; }

 private:
  Gpu(cuda::FirstGpu gpu, cuda::Stream stream, cuda::Module module)
      : gpu_(std::move(gpu)), stream_(std::move(stream)), module_(std::move(module)) {}

  // Declared in the order of who needs whom: freed the other way round.
  cuda::FirstGpu gpu_;
  cuda::Stream stream_;
  cuda::Module module_;
};

}  // namespace firebreak::workloads
