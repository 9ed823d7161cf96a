// SPDX-License-Identifier: Apache-2.0
/// Small changes to PTX text, of the kind that make a launch lose its idempotency: a store's offset, a guard,
/// a stride.
#pragma once

#include <string>
#include <vector>

namespace firebreak::idempotency {

struct PtxMutant {
  std::string what;  ///< "line 12: a store one element further"
  std::string text;
};

/// Each differs from `text` in one line. Text of other shape than our generators' and nvcc's has fewer.
std::vector<PtxMutant> make_mutants(const std::string& text);

}  // namespace firebreak::idempotency
