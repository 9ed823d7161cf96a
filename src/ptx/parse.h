// SPDX-License-Identifier: Apache-2.0
/// From PTX text to a valid Module, or to one located error.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ptx/ir.h"

namespace firebreak::ptx {

/// Lexes, parses and validates. Errors are InvalidArgument, the message is "file:line:column: what". Memory
/// and time are linear in the source. Thread safe.
Result<Module> parse(std::string_view source, std::string_view file_name = "ptx");

}  // namespace firebreak::ptx
