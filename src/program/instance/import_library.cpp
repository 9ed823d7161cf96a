// SPDX-License-Identifier: Apache-2.0
#include "program/instance/import_library.h"

#include <elf.h>

#include <array>
#include <cstring>

namespace firebreak::instance {
namespace {

constexpr std::size_t page_bytes = 4096;
/// endbr64; jmp *slot(%rip).
constexpr std::array<std::uint8_t, 16> jump{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25};
constexpr std::size_t jump_distance_at = 6;
constexpr std::size_t jump_ends_at = 10;

std::size_t rounded_up(std::size_t size_bytes, std::size_t to) { return (size_bytes + to - 1) / to * to; }

/// Writes what the linker reads, with the jumps, and behind it on pages of its own what it writes to.
class Writer {
 public:
  Writer(std::span<const ExportedFunction> functions, std::span<const ExportedWord> words,
         const std::string& needed)
      : functions_(functions), words_(words) {
    needed_at_ = add_string(needed);
    for (const ExportedFunction& each : functions_) names_.push_back(add_string(each.name));
    for (const ExportedWord& each : words_) names_.push_back(add_string(each.name));
    const std::size_t symbols = names_.size() + 1;
    symbols_at_ = rounded_up(sizeof(Elf64_Ehdr) + headers * sizeof(Elf64_Phdr), 8);
    hash_at_ = symbols_at_ + symbols * sizeof(Elf64_Sym);
    strings_at_ = hash_at_ + rounded_up((3 + symbols) * sizeof(std::uint32_t), 8);
    jumps_at_ = rounded_up(strings_at_ + strings_.size(), jump.size());
    slots_at_ = jumps_at_ + functions_.size() * jump.size();
    read_only_end_ = slots_at_ + functions_.size() * sizeof(std::uint64_t);
    dynamic_at_ = rounded_up(read_only_end_, page_bytes);
    words_at_ = dynamic_at_ + dynamic_entries * sizeof(Elf64_Dyn);
    bytes_.resize(words_at_ + words_.size() * sizeof(std::uint64_t));
  }

  std::vector<std::byte> write() {
    write_headers();
    write_symbols();
    write_hash();
    std::memcpy(&bytes_[strings_at_], strings_.data(), strings_.size());
    write_jumps();
    write_dynamic();
    for (std::size_t i = 0; i < words_.size(); ++i)
      put(words_at_ + i * sizeof(std::uint64_t), words_[i].value);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t headers = 4;
  static constexpr std::size_t dynamic_entries = 7;

  std::uint32_t add_string(std::string_view text) {
    const auto at = static_cast<std::uint32_t>(strings_.size());
    strings_.append(text).push_back('\0');
    return at;
  }
  template <class Value>
  void put(std::size_t at, const Value& value) {
    std::memcpy(&bytes_[at], &value, sizeof(value));
  }

  void write_headers() {
    Elf64_Ehdr file{};
    std::memcpy(file.e_ident, ELFMAG, SELFMAG);
    file.e_ident[EI_CLASS] = ELFCLASS64;
    file.e_ident[EI_DATA] = ELFDATA2LSB;
    file.e_ident[EI_VERSION] = EV_CURRENT;
    file.e_type = ET_DYN;
    file.e_machine = EM_X86_64;
    file.e_version = EV_CURRENT;
    file.e_phoff = sizeof(Elf64_Ehdr);
    file.e_ehsize = sizeof(Elf64_Ehdr);
    file.e_phentsize = sizeof(Elf64_Phdr);
    file.e_phnum = headers;
    put(0, file);
    const auto segment = [&](std::uint32_t type, std::uint32_t flags, std::size_t begin, std::size_t end,
                             std::size_t alignment) {
      return Elf64_Phdr{type, flags, begin, begin, begin, end - begin, end - begin, alignment};
    };
    const std::array<Elf64_Phdr, headers> segments{
        segment(PT_LOAD, PF_R | PF_X, 0, read_only_end_, page_bytes),
        segment(PT_LOAD, PF_R | PF_W, dynamic_at_, bytes_.size(), page_bytes),
        segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at_, words_at_, 8),
        segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16)};  // stacks would all become executable without it
    put(sizeof(Elf64_Ehdr), segments);
  }

  void write_symbols() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const bool is_function = i < functions_.size();
      Elf64_Sym symbol{};
      symbol.st_name = names_[i];
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, is_function ? STT_FUNC : STT_OBJECT);
      symbol.st_shndx = 1;  // the number has no meaning to the linker, but that it is not undefined
      symbol.st_value = is_function ? jumps_at_ + i * jump.size()
                                    : words_at_ + (i - functions_.size()) * sizeof(std::uint64_t);
      symbol.st_size = is_function ? jump.size() : sizeof(std::uint64_t);
      put(symbols_at_ + (i + 1) * sizeof(Elf64_Sym), symbol);
    }
  }

  /// One chain of all: they are few, and are looked up once.
  void write_hash() {
    const auto symbols = static_cast<std::uint32_t>(names_.size() + 1);
    std::vector<std::uint32_t> table{1, symbols, symbols > 1 ? 1U : 0U, 0};
    for (std::uint32_t i = 1; i < symbols; ++i) table.push_back(i + 1 < symbols ? i + 1 : 0);
    std::memcpy(&bytes_[hash_at_], table.data(), table.size() * sizeof(std::uint32_t));
  }

  void write_jumps() {
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const std::size_t at = jumps_at_ + i * jump.size();
      const std::size_t slot = slots_at_ + i * sizeof(std::uint64_t);
      put(at, jump);
      put(at + jump_distance_at, static_cast<std::uint32_t>(slot - (at + jump_ends_at)));
      put(slot, reinterpret_cast<std::uint64_t>(functions_[i].function));
    }
  }

  void write_dynamic() {
    const auto entry = [](std::int64_t tag, std::size_t value) {
      Elf64_Dyn made{};
      made.d_tag = tag;
      made.d_un.d_val = value;
      return made;
    };
    put(dynamic_at_,
        std::array<Elf64_Dyn, dynamic_entries>{entry(DT_NEEDED, needed_at_), entry(DT_HASH, hash_at_),
                                               entry(DT_STRTAB, strings_at_), entry(DT_SYMTAB, symbols_at_),
                                               entry(DT_STRSZ, strings_.size()),
                                               entry(DT_SYMENT, sizeof(Elf64_Sym)), entry(DT_NULL, 0)});
  }

  std::span<const ExportedFunction> functions_;
  std::span<const ExportedWord> words_;
  std::string strings_ = std::string(1, '\0');
  std::uint32_t needed_at_ = 0;
  std::vector<std::uint32_t> names_;
  std::size_t symbols_at_ = 0;
  std::size_t hash_at_ = 0;
  std::size_t strings_at_ = 0;
  std::size_t jumps_at_ = 0;
  std::size_t slots_at_ = 0;
  std::size_t read_only_end_ = 0;
  std::size_t dynamic_at_ = 0;
  std::size_t words_at_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::vector<std::byte> import_library(std::span<const ExportedFunction> functions,
                                      std::span<const ExportedWord> words, const std::string& needed) {
  return Writer(functions, words, needed).write();
}

}  // namespace firebreak::instance
