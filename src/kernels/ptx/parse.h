// SPDX-License-Identifier: Apache-2.0
/// The way from PTX text to a valid Module, or to one located error.
#pragma once

#include <string_view>

#include "ground/base/result.h"
#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

/// The treatment of an instruction that this parser does not know.
enum class UnknownInstructions : std::uint8_t {
  Refused,  ///< an error: for who runs the module
  Kept,     ///< it becomes Opcode::Opaque: for analysis. So does the body of a function that cannot be read
};

/// Lexes, parses and validates. Errors are InvalidArgument, the message is "file:line:column: what". Memory
/// and time are linear in the source. Thread safe.
Result<Module> parse(std::string_view source, std::string_view file_name = "ptx",
                     UnknownInstructions unknown = UnknownInstructions::Refused);

}  // namespace firebreak::ptx
