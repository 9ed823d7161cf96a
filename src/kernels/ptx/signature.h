// SPDX-License-Identifier: Apache-2.0
/// The formal side of a call. Internal to src/kernels/ptx.
#pragma once

#include <vector>

#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

/// Null where an indirect call names neither a prototype nor targets.
struct Signature {
  const std::vector<Parameter>* returns = nullptr;
  const std::vector<Parameter>* parameters = nullptr;
};

/// Returns the signature of the function, the prototype, or the first of the call targets. Indices must be
/// valid.
Signature signature_of(const Module& module, const Function& caller, const Call& call);

}  // namespace firebreak::ptx
