// SPDX-License-Identifier: Apache-2.0
/// Kernels from a seed that an analysis is likely to get wrong: registers that change in each round, loops
/// that end by data, counters of 16 and 64 bits that wrap around, exits out of nested loops, pointers made by
/// detours.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "idempotency/random_kernel.h"
#include "idempotency/traced_gpu.h"

namespace firebreak::idempotency {

enum class AdversarialKind : std::uint8_t {
  ChangingBound,      ///< a loop ends by comparing with what changes in each round
  NestedExit,         ///< the only way out of a loop is in one inside it
  ConstantAlias,      ///< constant memory is written by its address in global memory
  NoReturn,           ///< a function that does not return, or that is named as one of the system's, writes
  EndOfArray,         ///< a pointer to the end of one array, or to before the start of another
  GenericArithmetic,  ///< an address that is made from one of shared or local memory
  RelativePointer,    ///< the distance of two arrays goes through shared or local memory
  OthersWrites,       ///< what a thread reads or writes depends on who came first
  Mixed,              ///< statements of all kinds, in loops and branches
};
inline constexpr std::array adversarial_kinds{
    AdversarialKind::ChangingBound,   AdversarialKind::NestedExit,   AdversarialKind::ConstantAlias,
    AdversarialKind::NoReturn,        AdversarialKind::EndOfArray,   AdversarialKind::GenericArithmetic,
    AdversarialKind::RelativePointer, AdversarialKind::OthersWrites, AdversarialKind::Mixed};

const char* to_string(AdversarialKind kind);

/// PTX text of one kernel `k`, with the parameters of make_random_kernel(), and perhaps functions.
std::string make_adversarial_kernel(AdversarialKind kind, std::mt19937_64& random);

/// As allocate_buffers(), and each lies right behind the one before.
RandomBuffers allocate_adjacent_buffers(TracedGpu& gpu);

/// A launch of such a kernel. Pointers may be where one buffer ends and the next begins.
LaunchCase make_adversarial_launch(const RandomBuffers& buffers, std::mt19937_64& random);

}  // namespace firebreak::idempotency
