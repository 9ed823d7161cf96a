// SPDX-License-Identifier: Apache-2.0
/// One located complaint about the source. Internal to src/kernels/ptx, and for who re-validates a module.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

struct Diagnostic {
  SourceLocation location;
  std::string message;
};

/// The result of a check: nothing, or the first thing that is wrong.
using Finding = std::optional<Diagnostic>;

inline Finding complain(SourceLocation location, std::string message) {
  return Diagnostic{location, std::move(message)};
}

/// A word of the source for a message: in quotes, shortened, without unprintable bytes.
std::string quoted(std::string_view text);

/// "file:line:column: message"
std::string to_string(const Diagnostic& diagnostic, std::string_view file_name);

}  // namespace firebreak::ptx
