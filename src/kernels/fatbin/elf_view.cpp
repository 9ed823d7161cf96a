// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/elf_view.h"

#include <elf.h>

#include <algorithm>

#include "kernels/fatbin/bytes.h"

namespace firebreak::fatbin {
namespace {

tl::unexpected<Error> malformed(const char* what) {
  return fail(ErrorCode::Protocol, std::string("an ELF file ") + what);
}

/// The text that begins there, up to its zero.
Result<std::string_view> text_at(std::string_view table, std::uint64_t offset) {
  if (offset == 0 && table.empty()) return std::string_view();
  if (offset >= table.size()) return malformed("has a name outside of its names");
  const std::string_view rest = table.substr(offset);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return malformed("has a name without an end");
  return rest.substr(0, end);
}

/// Memory without content in the file. NVIDIA's own kinds are named in cuda-gdb's sources and nvdisasm's
/// output: SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED, and what the driver keeps of shared memory.
bool has_no_content(std::uint32_t type) {
  return type == SHT_NULL || type == SHT_NOBITS || type == SHT_LOPROC + 0x7 || type == SHT_LOPROC + 0x9 ||
         type == SHT_LOPROC + 0xa || type == SHT_LOPROC + 0x15;
}

struct Headers {
  Elf64_Ehdr file{};
  std::uint64_t count = 0;  ///< number of sections
  std::uint64_t names = 0;  ///< the section with their names
};

/// A file with 65,280 sections and more has their number in the first one (System V ABI, "Sections").
Result<Headers> headers_of(std::string_view file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return malformed("does not begin with its magic");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return malformed("is not one of 64 bits, little endian");
  Headers headers{*header, header->e_shnum, header->e_shstrndx};
  if (header->e_shoff == 0) {
    headers.count = 0;
    return headers;
  }
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return malformed("has sections of a size that is not known");
  const auto first = read_at<Elf64_Shdr>(file, header->e_shoff);
  if (!first) return malformed("is cut off");
  if (headers.count == 0) headers.count = first->sh_size;
  if (headers.names == SHN_XINDEX) headers.names = first->sh_link;
  if (headers.count > file.size() / sizeof(Elf64_Shdr) ||
      !part_of(file, header->e_shoff, headers.count * sizeof(Elf64_Shdr)))
    return malformed("is cut off");
  return headers;
}

}  // namespace

Result<ElfView> ElfView::of(std::string_view file) {
  const auto headers = headers_of(file);
  if (!headers) return propagate(headers);
  ElfView view;
  view.type_ = headers->file.e_type;
  view.machine_ = headers->file.e_machine;
  view.os_abi_ = headers->file.e_ident[EI_OSABI];
  view.abi_version_ = headers->file.e_ident[EI_ABIVERSION];
  std::vector<std::uint32_t> name_offsets;
  for (std::uint64_t i = 0; i < headers->count; ++i) {
    const auto raw = read_at<Elf64_Shdr>(file, headers->file.e_shoff + i * sizeof(Elf64_Shdr));
    if (!raw) return malformed("is cut off");
    Section section;
    section.type = raw->sh_type;
    section.flags = raw->sh_flags;
    section.size_bytes = raw->sh_size;
    section.alignment = raw->sh_addralign;
    section.link = raw->sh_link;
    section.info = raw->sh_info;
    if (!has_no_content(raw->sh_type)) {
      const auto content = part_of(file, raw->sh_offset, raw->sh_size);
      if (!content) return malformed("has a section that is cut off");
      section.content = *content;
    }
    name_offsets.push_back(raw->sh_name);
    view.sections_.push_back(section);
  }
  if (view.sections_.empty()) return view;
  if (headers->names >= view.sections_.size()) return malformed("has no names of its sections");
  for (std::size_t i = 0; i < view.sections_.size(); ++i) {
    const auto name = text_at(view.sections_[headers->names].content, name_offsets[i]);
    if (!name) return propagate(name);
    view.sections_[i].name = *name;
  }
  return view;
}

const ElfView::Section* ElfView::find(std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(),
                                  [&](const Section& each) { return each.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

Result<std::vector<ElfView::Symbol>> ElfView::symbols() const {
  const auto of_type = [&](std::uint32_t type) {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const Section& each) { return each.type == type; });
    return found == sections_.end() ? nullptr : &*found;
  };
  std::vector<Symbol> symbols;
  const Section* const table = of_type(SHT_SYMTAB);
  if (table == nullptr) return symbols;
  if (table->link >= sections_.size()) return malformed("has symbols without names");
  const Section* const further = of_type(SHT_SYMTAB_SHNDX);
  const std::string_view names = sections_[table->link].content;
  const std::uint64_t count = table->content.size() / sizeof(Elf64_Sym);
  symbols.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto raw = read_at<Elf64_Sym>(table->content, i * sizeof(Elf64_Sym));
    const auto name = text_at(names, raw->st_name);
    if (!name) return propagate(name);
    Symbol symbol{*name,
                  static_cast<std::uint8_t>(ELF64_ST_TYPE(raw->st_info)),
                  static_cast<std::uint8_t>(ELF64_ST_BIND(raw->st_info)),
                  raw->st_other,
                  raw->st_shndx,
                  raw->st_shndx >= SHN_LORESERVE,
                  raw->st_value,
                  raw->st_size};
    if (raw->st_shndx == SHN_XINDEX) {
      const auto index = read_at<std::uint32_t>(further == nullptr ? std::string_view() : further->content,
                                                i * sizeof(std::uint32_t));
      if (!index) return malformed("has a symbol without a section");
      symbol.section = *index;
      symbol.is_special = false;
    }
    if (!symbol.is_special && symbol.section >= sections_.size())
      return malformed("has a symbol in a section that is not there");
    symbols.push_back(symbol);
  }
  return symbols;
}

Result<std::vector<ElfView::Relocation>> ElfView::relocations(const Section& section) const {
  const std::uint64_t each_bytes = section.type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
  if (section.content.size() % each_bytes != 0) return malformed("has relocations that are cut off");
  std::vector<Relocation> relocations;
  relocations.reserve(section.content.size() / each_bytes);
  for (std::uint64_t offset = 0; offset < section.content.size(); offset += each_bytes) {
    const auto raw = read_at<Elf64_Rel>(section.content, offset);
    Relocation relocation{static_cast<std::uint32_t>(ELF64_R_SYM(raw->r_info)), 0};
    if (section.type != SHT_REL) relocation.addend = read_at<Elf64_Rela>(section.content, offset)->r_addend;
    relocations.push_back(relocation);
  }
  return relocations;
}

std::uint64_t elf_bytes(std::string_view readable) {
  const auto headers = headers_of(readable);
  if (!headers) return 0;
  const Elf64_Ehdr& file = headers->file;
  std::uint64_t end = std::max(file.e_shoff + headers->count * sizeof(Elf64_Shdr),
                               file.e_phoff + std::uint64_t{file.e_phentsize} * file.e_phnum);
  for (std::uint64_t i = 0; i < headers->count; ++i) {
    const auto section = read_at<Elf64_Shdr>(readable, file.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section || section->sh_offset > readable.size() || section->sh_size > readable.size()) return 0;
    if (!has_no_content(section->sh_type)) end = std::max(end, section->sh_offset + section->sh_size);
  }
  return end > readable.size() ? 0 : end;
}

}  // namespace firebreak::fatbin
