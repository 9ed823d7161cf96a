// SPDX-License-Identifier: Apache-2.0
/// A 64-bit ELF file as sections, symbols and relocations, wherever it came from.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::fatbin {

class ElfView {
 public:
  struct Section {
    std::string_view name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t alignment = 0;
    std::uint32_t link = 0;
    std::uint32_t info = 0;
    std::string_view content;  ///< empty where the file holds none
  };
  struct Symbol {
    std::string_view name;
    std::uint8_t type = 0;
    std::uint8_t binding = 0;
    std::uint8_t other = 0;
    std::uint32_t section = 0;  ///< 0: defined nowhere here
    bool is_special = false;    ///< its section is none: absolute, common and such
    std::uint64_t value = 0;
    std::uint64_t size_bytes = 0;
  };
  struct Relocation {
    std::uint32_t symbol = 0;
    std::int64_t addend = 0;
  };

  /// Reads a file. Its words about itself are checked here, but for symbols and relocations. The view lives
  /// as long as `file`.
  static Result<ElfView> of(std::string_view file);

  std::uint16_t type() const { return type_; }
  std::uint16_t machine() const { return machine_; }
  std::uint8_t os_abi() const { return os_abi_; }
  std::uint8_t abi_version() const { return abi_version_; }
  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(std::string_view name) const;

  /// Returns the symbols of its one symbol table; none: no symbols.
  Result<std::vector<Symbol>> symbols() const;
  /// Returns the relocations of a section, with an addend each or without.
  Result<std::vector<Relocation>> relocations(const Section& section) const;

 private:
  std::uint16_t type_ = 0;
  std::uint16_t machine_ = 0;
  std::uint8_t os_abi_ = 0;
  std::uint8_t abi_version_ = 0;
  std::vector<Section> sections_;
};

/// How long an ELF file is whose length nobody says: up to the last byte that its header names. 0: it is
/// none. `readable`: from where it begins to where one may read.
std::uint64_t elf_bytes(std::string_view readable);

}  // namespace firebreak::fatbin
