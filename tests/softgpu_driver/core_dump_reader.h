// SPDX-License-Identifier: Apache-2.0
/// Reads a GPU core dump, as far as the tests need it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace firebreak::test {

class CoreDumpReader {
 public:
  explicit CoreDumpReader(std::string bytes) : bytes_(std::move(bytes)) {
    const auto header = at<Elf64_Ehdr>(0);
    valid_ = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_CORE &&
             header.e_machine == 190 && header.e_shentsize == 64 &&
             header.e_shoff + header.e_shnum * 64u == bytes_.size();
    if (!valid_) return;
    const auto names = at<Elf64_Shdr>(header.e_shoff + header.e_shstrndx * 64u);
    for (unsigned index = 0; index < header.e_shnum; ++index) {
      const auto section = at<Elf64_Shdr>(header.e_shoff + index * 64u);
      sections_[bytes_.c_str() + names.sh_offset + section.sh_name] = section;
    }
  }

  bool valid() const { return valid_; }
  bool has(const std::string& name) const { return sections_.contains(name); }
  /// From SHT_LOUSER on.
  std::uint32_t type(const std::string& name) const { return sections_.at(name).sh_type - SHT_LOUSER; }
  std::size_t entries(const std::string& name) const {
    return sections_.at(name).sh_size / sections_.at(name).sh_entsize;
  }
  std::size_t entry_bytes(const std::string& name) const { return sections_.at(name).sh_entsize; }
  std::uint32_t word(const std::string& name, std::size_t entry, std::size_t offset) const {
    const Elf64_Shdr& section = sections_.at(name);
    return at<std::uint32_t>(section.sh_offset + entry * section.sh_entsize + offset);
  }

 private:
  template <class Value>
  Value at(std::size_t offset) const {
    Value value{};
    if (offset + sizeof(value) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return value;
  }

  std::string bytes_;
  bool valid_ = false;
  std::map<std::string, Elf64_Shdr> sections_;
};

}  // namespace firebreak::test
