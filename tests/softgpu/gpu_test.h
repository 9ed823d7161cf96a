// SPDX-License-Identifier: Apache-2.0
/// What tests against a driver share. The driver is the software one, unless FIREBREAK_CUDA_LIBRARY names
/// another: FIREBREAK_CUDA_LIBRARY=libcuda.so.1 runs the same tests on a real GPU.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "program/cuda/context.h"
#include "program/cuda/device.h"
#include "program/cuda/driver.h"

namespace firebreak::test {

/// Sets FIREBREAK_CUDA_LIBRARY where it is not set yet, and gives the software GPU a state folder of this
/// process's own and short delays. Children inherit it. True: the software GPU.
bool choose_driver();

/// The value, or a failed test that says why there is none.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A context of our own on the first GPU, current on the test's thread.
class GpuTest : public ::testing::Test {
 protected:
  GpuTest() {
    choose_driver();
    driver_ = must(cuda::Driver::open());
    context_.emplace(must(cuda::Context::create(device())));
  }

  const cuda::Driver& driver() const { return *driver_; }
  cuda::Device device() const { return must(cuda::Device::get(*driver_, 0)); }
  const cuda::Context& context() const { return *context_; }
  void end_context() { context_.reset(); }

 private:
  std::unique_ptr<const cuda::Driver> driver_;
  std::optional<cuda::Context> context_;
};

}  // namespace firebreak::test
