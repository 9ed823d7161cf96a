// SPDX-License-Identifier: Apache-2.0
/// PTX as text, read for what it declares alone: much faster than a parser, and whatever instructions it
/// uses. Source: PTX ISA 9.0, "State Spaces", "Variable Declarations" and "Linking Directives".
#pragma once

#include <string_view>

#include "kernels/fatbin/code.h"

namespace firebreak::fatbin {

/// Returns the variables of a text. It says where it is not certain, as code_of_cubin() does. A variable is
/// reached where its name stands anywhere else in the text.
Code code_of_ptx(std::string_view text);

}  // namespace firebreak::fatbin
