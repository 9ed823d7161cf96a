// SPDX-License-Identifier: Apache-2.0
#include "virtual/code_image.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>

namespace firebreak::virtual_driver {
namespace {

constexpr std::uint32_t fat_binary_magic = 0xBA55ED50;
/// The structure that nvcc makes around one; `data` points at the fat binary.
constexpr std::uint32_t fat_binary_wrapper_magic = 0x466243B1;

struct FatBinary {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t content_bytes;
};
static_assert(sizeof(FatBinary) == 16);

std::size_t elf_bytes(const char* image) {
  Elf64_Ehdr header{};
  std::memcpy(&header, image, sizeof header);
  std::size_t end = std::max(header.e_shoff + std::size_t{header.e_shentsize} * header.e_shnum,
                             header.e_phoff + std::size_t{header.e_phentsize} * header.e_phnum);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{};
    std::memcpy(&section, image + header.e_shoff + i * header.e_shentsize, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max<std::size_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

/// PTX without its comments.
std::string without_comments(std::string_view text) {
  std::string kept;
  for (std::size_t i = 0; i < text.size();) {
    const bool to_line_end = text.substr(i, 2) == "//";
    const bool to_mark = text.substr(i, 2) == "/*";
    if (!to_line_end && !to_mark) {
      kept += text[i++];
      continue;
    }
    const std::size_t end = text.find(to_line_end ? "\n" : "*/", i);
    i = end == std::string_view::npos ? text.size() : end + (to_mark ? 2 : 0);
    kept += ' ';
  }
  return kept;
}

/// The name in ".global .align 4 .b8 name[16]": the first word that is no directive and no number.
std::string declared_name(std::string_view declaration) {
  for (std::size_t i = 0; i < declaration.size();) {
    if (!is_name(declaration[i]) && declaration[i] != '.') {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < declaration.size() && is_name(declaration[end])) ++end;
    const std::string_view word = declaration.substr(i, end - i);
    const bool is_number = std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    if (word.front() != '.' && !is_number) return std::string(word);
    i = end;
  }
  return {};
}

}  // namespace

std::size_t code_image_bytes(const void* image) {
  if (image == nullptr) return 0;
  const auto* const bytes = static_cast<const char*>(image);
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic == fat_binary_wrapper_magic) return 0;
  if (magic == fat_binary_magic) {
    FatBinary header{};
    std::memcpy(&header, bytes, sizeof header);
    return header.header_bytes + header.content_bytes;
  }
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) return elf_bytes(bytes);
  const bool is_text = std::isprint(static_cast<unsigned char>(bytes[0])) != 0 || bytes[0] == '\n';
  return is_text ? std::strlen(bytes) + 1 : 0;
}

std::optional<std::vector<std::string>> variables_of(std::string_view image) {
  constexpr std::string_view directive = ".global";
  if (image.empty() || image.substr(0, SELFMAG) == ELFMAG) return std::nullopt;
  const std::string text = without_comments(image.substr(0, image.find('\0')));
  if (text.find(".version") == std::string::npos) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t at = text.find(directive); at != std::string::npos; at = text.find(directive, at + 1)) {
    const std::size_t after = at + directive.size();
    // "ld.global.u32" is no declaration, ".global.attribute" is none that we know.
    const bool begins = at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0;
    if (!begins || after == text.size()) continue;
    const std::string name =
        declared_name(std::string_view(text).substr(after, text.find(';', after) - after));
    if (name.empty()) return std::nullopt;
    names.push_back(name);
  }
  return names;
}

}  // namespace firebreak::virtual_driver
