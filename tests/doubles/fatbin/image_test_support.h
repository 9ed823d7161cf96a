// SPDX-License-Identifier: Apache-2.0
/// Images made by hand, a field at a time.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace firebreak::fatbin::test {

template <class Type>
void append(std::string& to, const Type& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A cubin: sections, symbols and relocations by name.
struct CubinBuilder {
  struct Section {
    std::string name;
    std::uint32_t type = SHT_PROGBITS;
    std::uint64_t flags = SHF_ALLOC | SHF_WRITE;
    std::string content;
    std::uint64_t size_bytes = 0;  ///< without content
    std::uint64_t alignment = 8;
  };
  struct Symbol {
    std::string name;
    std::string section;  ///< empty: undefined
    std::uint64_t value = 0;
    std::uint64_t size_bytes = 4;
    unsigned char type = STT_OBJECT;
    unsigned char binding = STB_LOCAL;
    unsigned char other = 0;
  };
  struct Relocation {
    std::string symbol;
    std::int64_t addend = 0;
    std::string into = ".nv.constant4";
  };

  std::uint16_t type = ET_EXEC;
  std::uint16_t machine = 190;
  unsigned char os_abi = 0x41;
  unsigned char abi_version = 8;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;

  /// Global memory that is zero first.
  CubinBuilder& with_global(std::uint64_t size_bytes) {
    sections.push_back({".nv.global", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, "", size_bytes});
    return *this;
  }
  CubinBuilder& with_initialised(std::string content) {
    sections.push_back({".nv.global.init", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, std::move(content)});
    return *this;
  }
  CubinBuilder& with(Symbol symbol) {
    symbols.push_back(std::move(symbol));
    return *this;
  }
  CubinBuilder& with(Relocation relocation) {
    relocations.push_back(std::move(relocation));
    return *this;
  }

  std::string build() const {
    std::vector<Section> all{{"", SHT_NULL, 0, ""}};
    all.insert(all.end(), sections.begin(), sections.end());
    all.push_back({".nv.constant4", SHT_PROGBITS, SHF_ALLOC, std::string(64, '\0')});
    std::map<std::string, std::uint32_t> index;
    for (const Section& section : all) index.emplace(section.name, static_cast<std::uint32_t>(index.size()));
    std::string names(1, '\0');
    std::string table(sizeof(Elf64_Sym), '\0');
    std::map<std::string, std::uint64_t> symbol_index;
    for (const Symbol& symbol : symbols) {
      Elf64_Sym raw{};
      raw.st_name = static_cast<std::uint32_t>(names.size());
      names += symbol.name + '\0';
      raw.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.binding, symbol.type));
      raw.st_other = symbol.other;
      raw.st_shndx = static_cast<std::uint16_t>(symbol.section.empty() ? 0 : index.at(symbol.section));
      raw.st_value = symbol.value;
      raw.st_size = symbol.size_bytes;
      symbol_index.emplace(symbol.name, table.size() / sizeof raw);
      append(table, raw);
    }
    const auto symbols_at = static_cast<std::uint32_t>(all.size());
    all.push_back({".symtab", SHT_SYMTAB, 0, table});
    all.push_back({".strtab", SHT_STRTAB, 0, names});
    std::vector<std::pair<std::size_t, std::uint32_t>> infos;
    for (const Relocation& relocation : relocations) {
      std::string raw;
      append(raw, Elf64_Rela{0, ELF64_R_INFO(symbol_index.at(relocation.symbol), 2), relocation.addend});
      infos.emplace_back(all.size(), index.at(relocation.into));
      all.push_back({".rela" + relocation.into, SHT_RELA, 0, raw});
    }
    return put_together(all, symbols_at, infos);
  }

 private:
  std::string put_together(std::vector<Section>& all, std::uint32_t symbols_at,
                           const std::vector<std::pair<std::size_t, std::uint32_t>>& infos) const {
    std::string names;
    std::vector<Elf64_Shdr> headers;
    all.push_back({".shstrtab", SHT_STRTAB, 0, ""});
    for (const Section& section : all) {
      Elf64_Shdr header{};
      header.sh_name = static_cast<std::uint32_t>(names.size());
      names += section.name + '\0';
      header.sh_type = section.type;
      header.sh_flags = section.flags;
      header.sh_addralign = section.alignment;
      headers.push_back(header);
    }
    all.back().content = names;
    headers[symbols_at].sh_link = symbols_at + 1;
    for (const auto& [section, into] : infos) headers[section].sh_info = into;
    std::string bytes(sizeof(Elf64_Ehdr), '\0');
    for (std::size_t i = 0; i < all.size(); ++i) {
      headers[i].sh_offset = bytes.size();
      headers[i].sh_size = all[i].content.empty() ? all[i].size_bytes : all[i].content.size();
      bytes += all[i].content;
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_OSABI] = os_abi;
    header.e_ident[EI_ABIVERSION] = abi_version;
    header.e_type = type;
    header.e_machine = machine;
    header.e_shoff = bytes.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<std::uint16_t>(all.size());
    header.e_shstrndx = static_cast<std::uint16_t>(all.size() - 1);
    std::memcpy(bytes.data(), &header, sizeof header);
    for (const Elf64_Shdr& each : headers) append(bytes, each);
    return bytes;
  }
};

struct EntryToBuild {
  std::uint16_t kind = 2;
  std::uint32_t arch = 90;
  std::string payload;
  std::uint64_t flags = 0x11;
  std::uint64_t unpacked_bytes = 0;
};

inline std::string fat_binary(const std::vector<EntryToBuild>& entries) {
  std::string content;
  for (const EntryToBuild& entry : entries) {
    const std::uint64_t padded = (entry.payload.size() + 7) / 8 * 8;
    const bool is_compressed = (entry.flags & 0xF000) != 0;
    append(content, entry.kind);
    append(content, std::uint16_t{0x101});
    append(content, std::uint32_t{64});
    append(content, padded);
    append(content, static_cast<std::uint32_t>(is_compressed ? entry.payload.size() : 0));
    append(content, std::uint32_t{0});
    append(content, std::uint32_t{0x00010008});
    append(content, entry.arch);
    append(content, std::uint64_t{0});
    append(content, entry.flags);
    append(content, std::uint64_t{0});
    append(content, entry.unpacked_bytes);
    content += entry.payload + std::string(padded - entry.payload.size(), '\0');
  }
  std::string bytes;
  append(bytes, std::uint32_t{0xBA55ED50});
  append(bytes, std::uint16_t{1});
  append(bytes, std::uint16_t{16});
  append(bytes, std::uint64_t{content.size()});
  return bytes + content;
}

}  // namespace firebreak::fatbin::test
