// SPDX-License-Identifier: Apache-2.0
/// A shared library that stands in front of the C library for one copy of a driver: the dynamic linker looks
/// a name of the copy's up in it first, from the copy's constructors on. It has no code of its own: what it
/// exports leads to addresses in this process. Bytes alone: nothing here loads anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::instance {

struct ExportedFunction {
  std::string_view name;
  const void* function = nullptr;
};
/// A variable of eight bytes, as `environ` is.
struct ExportedWord {
  std::string_view name;
  std::uint64_t value = 0;
};

/// An ELF library for x86-64 that exports those and depends on the library at the path `needed`.
std::vector<std::byte> import_library(std::span<const ExportedFunction> functions,
                                      std::span<const ExportedWord> words, const std::string& needed);

}  // namespace firebreak::instance
