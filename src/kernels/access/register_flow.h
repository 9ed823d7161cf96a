// SPDX-License-Identifier: Apache-2.0
/// The origins of each register of a kernel, whatever path was taken and through whatever instruction, known
/// or not. Internal to src/kernels/access.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/access/budget.h"
#include "kernels/ptx/ir.h"

namespace firebreak::access {

/// The origins of one value. Comparisons carry no pointers: nobody puts one together of single answers.
struct ValueOrigins {
  static constexpr std::size_t most_words = 6;
  static constexpr std::uint32_t word_bytes = 8;

  std::array<std::uint16_t, most_words> words{};  ///< words of the parameter block, each of word_bytes
  std::uint8_t word_count = 0;
  bool is_any = false;       ///< true: made of any word of it
  bool has_address = false;  ///< true: made of the address of a variable, or of something in shared, local or
                             ///< parameter memory
  bool by_order = false;  ///< the value may depend on the order of the block's threads
  bool by_own = false;    ///< the same, if other threads write what the thread reads back

  /// True: it has grown.
  bool add(const ValueOrigins& other);
  bool add_words(std::uint64_t offset_bytes, std::uint64_t size_bytes);
  bool has_pointers() const { return word_count != 0 || is_any || has_address; }
  void forget_pointers();
  bool operator==(const ValueOrigins&) const = default;
};

struct RegisterFlow {
  std::vector<ValueOrigins> registers;
  bool branches_by_order = false;  ///< the way that a thread goes may depend on the order of the block's
                                   ///< threads
  bool branches_by_own = false;
  bool reads_shared = false;  ///< memory of the block, where several threads may have written in any order
  bool has_order = false;     ///< atomics in shared memory and their like: who comes first matters by design
};

/// `is_own_read`: by instruction; a load of what the thread has certainly written itself. Where the budget is
/// spent it lacks something.
RegisterFlow find_register_flow(const ptx::Function& kernel, const std::vector<bool>& is_own_read,
                                Budget& budget);

}  // namespace firebreak::access
