// SPDX-License-Identifier: Apache-2.0
/// Parameters of the kernel of the fence's proof. The host and the GPU share them: the layout of every struct
/// here is the layout of a kernel's parameter.
#pragma once

#include <cstdint>

namespace firebreak::workloads::scribble {

/// A word that did not hold what its only writer had put there.
struct Find {
  std::uint64_t word;  ///< its number in its region
  std::uint64_t found;
  std::uint64_t expected;
};

struct Finds {
  static constexpr std::uint32_t kept = 15;  ///< number of finds that are kept of all that are counted

  std::uint64_t count;
  Find first[kept];
};

/// Round r exchanges every word for `value` + r, and finds what is not what stood there before: `before`, and
/// from the second round on what the round before wrote.
struct ExchangeArguments {
  unsigned long long* words;
  Finds* finds;
  std::uint64_t before;
  std::uint64_t value;
  std::uint32_t count;  ///< number of words
  std::uint32_t rounds;
  std::uint32_t looks_at_first;  ///< 0: the first round takes whatever is there
};

}  // namespace firebreak::workloads::scribble
