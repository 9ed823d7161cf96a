// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "program/cuda/first_gpu.h"
#include "program/cuda/module.h"
#include "program/cuda/stream.h"

namespace firebreak::workloads {

/// The first GPU with one context, one stream and one module of kernels. The context is current on the thread
/// that opened it, until another takes it, and only one thread at a time uses it.
class Gpu {
 public:
  /// `library` as for cuda::Driver::open.
  static Result<Gpu> open(std::string_view ptx, const std::string& library = {});
  /// Opens it with the primary context, as programs of the CUDA runtime have it.
  static Result<Gpu> open_primary(std::string_view ptx, const std::string& library = {});
  /// Opens it with a context of so many multiprocessors, where the driver can (program/cuda/small_context.h).
  static Result<Gpu> open_small(std::string_view ptx, unsigned int multiprocessors,
                                const std::string& library = {});

  const cuda::Driver& driver() const { return gpu_.driver(); }
  const cuda::Stream& stream() const { return stream_; }
  const cuda::Module& module() const { return module_; }
  const cuda::ContextView& context() const { return gpu_.context(); }
  bool is_small() const { return gpu_.is_small(); }

 private:
  static Result<Gpu> load(Result<cuda::FirstGpu> gpu, std::string_view ptx);
  Gpu(cuda::FirstGpu gpu, cuda::Stream stream, cuda::Module module)
      : gpu_(std::move(gpu)), stream_(std::move(stream)), module_(std::move(module)) {}

  // Declared in the order of who needs whom: freed the other way round.
  cuda::FirstGpu gpu_;
  cuda::Stream stream_;
  cuda::Module module_;
};

}  // namespace firebreak::workloads
