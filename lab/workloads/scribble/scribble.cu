// SPDX-License-Identifier: Apache-2.0
// Each word has one writer, a thread that knows what it put there. An exchange sees whatever came in between:
// no stray write, by whatever engine, can hide between a load and a store.

#include "workloads/scribble/scribble_shape.h"

using namespace firebreak::workloads::scribble;

extern "C" __global__ void scribble_exchange(ExchangeArguments a) {
  const std::uint32_t threads = gridDim.x * blockDim.x;
  for (std::uint32_t word = blockIdx.x * blockDim.x + threadIdx.x; word < a.count; word += threads) {
    unsigned long long expected = a.before;
    bool looks = a.looks_at_first != 0;
    for (std::uint32_t round = 0; round < a.rounds; ++round) {
      const unsigned long long next = a.value + round;
      const unsigned long long found = atomicExch(a.words + word, next);
      if (looks && found != expected) {
        const unsigned long long nth =
            atomicAdd(reinterpret_cast<unsigned long long*>(&a.finds->count), 1ull);
        if (nth < Finds::kept) a.finds->first[nth] = {word, found, expected};
      }
      expected = next;
      looks = true;
    }
  }
}
