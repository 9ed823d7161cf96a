// SPDX-License-Identifier: Apache-2.0
/// What a launch gives its kernel, where the program has the address of a variable: a kernel may store what
/// it is given anywhere, and in the next instance the variable lies somewhere else.
#pragma once

#include <cstddef>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "program/cuda/backend.h"
#include "program/virtual/objects.h"
#include "program/virtual/taken_variables.h"

namespace firebreak::virtual_driver {

/// A launch's arguments where all of them are given in one piece, after cuda.h: pairs of a name and a value
/// in `extra`, and CU_LAUNCH_PARAM_END. None: there is another name among them. The bytes are the caller's.
std::optional<std::span<const std::byte>> arguments_in_one_piece(void** extra);

/// Thread safe.
class ArgumentAddresses {
 public:
  enum class Give {
    NoAddress,   ///< of such a variable
    Address,     ///< where it lies in this instance
    OldAddress,  ///< where it lay in another one: nothing is there
    Unknown,     ///< the driver does not say what the kernel takes
  };

  /// `kernel`: what the program calls its function; `own`: what the instance in `slot` calls it. Looks at
  /// each aligned word of the arguments.
  Give look(const cuda::Backend& driver, Slot slot, const TakenVariables& taken, const Object* kernel,
            CUfunction own, void** parameters, void** extra);
  /// The same of any bytes that the GPU is given.
  static Give in_words(const void* bytes, std::size_t size_bytes, Slot slot, const TakenVariables& taken);

  struct Parameter {
    std::size_t offset_bytes = 0;  ///< in the packed block
    std::size_t size_bytes = 0;
  };
  using Layout = std::vector<Parameter>;
  /// Null: the driver does not say. The answer stays.
  const Layout* layout_of(const cuda::Backend& driver, const Object& kernel, CUfunction own);

 private:
  std::shared_mutex mutex_;
  std::unordered_map<const Object*, Layout> known_;  ///< objects live as long as the process
};

/// A launch's parameters as its kernel has them, in `room`, with zeroes in between. None: it is too small.
std::optional<std::span<const std::byte>> pack(const ArgumentAddresses::Layout& layout,
                                               const void* const* parameters, std::span<std::byte> room);

}  // namespace firebreak::virtual_driver
