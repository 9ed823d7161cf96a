// SPDX-License-Identifier: Apache-2.0
/// Random programs of the CUDA driver: what one sees depends on its seed alone.
#pragma once

#include <cstdint>

#include "program/cuda/backend.h"

namespace firebreak::test {

/// Makes, uses and gives back streams, events, memory, code and contexts, `calls` times at random, in the
/// calling thread, whose current context it needs. All that the driver has answered and all that the GPU has
/// computed, in one number. `with_contexts`: also with contexts of its own making, and then with modules
/// alone: each context has the variables of a library for itself, and such a program is not moved.
std::uint64_t run_random_program(const cuda::Backend& driver, std::uint64_t seed, unsigned int calls,
                                 bool with_contexts);

}  // namespace firebreak::test
