// SPDX-License-Identifier: Apache-2.0
/// Checks a module against the rules of PTX. parse() has done so; who changes or builds a module can do it
/// again.
#pragma once

#include <string_view>

#include "ground/base/result.h"
#include "kernels/ptx/diagnostic.h"
#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

/// Runs every pass below. InvalidArgument: "file:line:column: what" of the first problem. Thread safe.
Status validate(const Module& module, std::string_view file_name = "ptx");

/// The first problem.
Finding find_invalid(const Module& module);

// The passes, one file each, in the order in which they run: each relies on what those before it have found.
Finding check_references(const Module& module);    ///< every index points to something of the right kind
Finding check_names(const Module& module);         ///< unique among variables and functions; sizes make sense
Finding check_labels(const Module& module);        ///< branches and branch tables lead into their function
Finding check_modifiers(const Module& module);     ///< types and modifiers exist for the instruction
Finding check_types(const Module& module);         ///< operands fit the instruction
Finding check_combinations(const Module& module);  ///< modifiers, types and operands go together
Finding check_spaces(const Module& module);        ///< state spaces are legal, and those of the symbols
Finding check_vectors(const Module& module);       ///< vectors have the right number of elements
Finding check_calls(const Module& module);         ///< arguments fit the callee's parameters

}  // namespace firebreak::ptx
