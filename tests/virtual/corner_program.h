// SPDX-License-Identifier: Apache-2.0
/// What programs do that a move, or the virtual driver itself, may come in the way of: several threads, calls
/// that the GPU waits for, calls that are wrong.
#pragma once

#include <istream>
#include <string>
#include <utility>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// It needs the calling thread's current context.
class CornerProgram {
 public:
  explicit CornerProgram(const cuda::Backend& driver) : driver_(driver) {}

  /// Does what the first word says, and answers a value where something is asked.
  ///   capture_and_free TIMES  A thread captures so often, and this one allocates and frees meanwhile.
  ///   free_twice              Frees in the order of a stream, and answers what the second time does.
  std::pair<CUresult, unsigned long long> run(const std::string& what, std::istream& words);

 private:
  CUresult prepare();
  CUresult capture_and_free(unsigned int times);
  CUresult free_twice();

  const cuda::Backend driver_;
  CUcontext context_ = nullptr;
};

}  // namespace firebreak::test
