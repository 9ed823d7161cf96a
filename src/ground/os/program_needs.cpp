// SPDX-License-Identifier: Apache-2.0
#include "ground/os/program_needs.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace firebreak::os {
namespace {

constexpr std::size_t most_segments = 64;
constexpr std::size_t most_entries = 4096;
constexpr std::size_t longest_name = 4096;

/// A file of which nothing is believed: every read may fail.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file, std::ios::binary) {}

  template <class T>
  bool read(std::uint64_t place, T& into) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(place));
    return file_.read(reinterpret_cast<char*>(&into), sizeof(into)).good();
  }
  std::string text(std::uint64_t place, char end) {
    std::string text;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(place));
    for (char letter = 0; text.size() < longest_name && file_.get(letter) && letter != end;) text += letter;
    return text;
  }

 private:
  std::ifstream file_;
};

std::vector<Elf64_Phdr> segments_of(Reader& reader, const Elf64_Ehdr& head) {
  std::vector<Elf64_Phdr> segments;
  for (std::size_t number = 0; number < std::min<std::size_t>(head.e_phnum, most_segments); ++number) {
    Elf64_Phdr segment{};
    if (reader.read(head.e_phoff + number * sizeof(segment), segment)) segments.push_back(segment);
  }
  return segments;
}

/// Where in the file stands what is at that address; empty: nowhere.
std::optional<std::uint64_t> place_of(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const Elf64_Phdr& each : segments) {
    if (each.p_type == PT_LOAD && address >= each.p_vaddr && address - each.p_vaddr < each.p_filesz)
      return each.p_offset + (address - each.p_vaddr);
  }
  return std::nullopt;
}

std::vector<std::string> libraries_in(Reader& reader, const std::vector<Elf64_Phdr>& segments,
                                      const Elf64_Phdr& dynamic) {
  std::vector<std::uint64_t> names;
  std::optional<std::uint64_t> strings;
  for (std::size_t number = 0;
       number < std::min<std::size_t>(dynamic.p_filesz / sizeof(Elf64_Dyn), most_entries); ++number) {
    Elf64_Dyn entry{};
    if (!reader.read(dynamic.p_offset + number * sizeof(entry), entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = place_of(segments, entry.d_un.d_ptr);
  }
  std::vector<std::string> libraries;
  if (!strings) return libraries;
  for (const std::uint64_t name : names) libraries.push_back(reader.text(*strings + name, '\0'));
  return libraries;
}

std::optional<ProgramNeeds> needs_of_elf(Reader& reader) {
  Elf64_Ehdr head{};
  const bool is_elf = reader.read(0, head) && std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                      head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phentsize == sizeof(Elf64_Phdr);
  if (!is_elf) return std::nullopt;
  ProgramNeeds needs;
  const std::vector<Elf64_Phdr> segments = segments_of(reader, head);
  for (const Elf64_Phdr& each : segments) {
    if (each.p_type == PT_INTERP) needs.dynamic_linker = reader.text(each.p_offset, '\0');
    if (each.p_type == PT_DYNAMIC) needs.libraries = libraries_in(reader, segments, each);
  }
  return needs;
}

/// "#! /usr/bin/env python3": the first word, as Linux takes it; empty: it is no script.
std::string interpreter_of(Reader& reader) {
  const std::string line = reader.text(0, '\n');
  if (!line.starts_with("#!")) return {};
  const std::size_t begin = std::min(line.find_first_not_of(" \t", 2), line.size());
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

}  // namespace

std::optional<ProgramNeeds> program_needs(const std::string& file) {
  Reader reader(file);
  const std::string interpreter = interpreter_of(reader);
  if (interpreter.empty()) return needs_of_elf(reader);
  Reader of_interpreter(interpreter);
  return needs_of_elf(of_interpreter);
}

std::string starter_of(const std::string& file) {
  Reader reader(file);
  std::string interpreter = interpreter_of(reader);
  if (!interpreter.empty()) return interpreter;
  const auto needs = needs_of_elf(reader);
  return needs ? needs->dynamic_linker : std::string();
}

}  // namespace firebreak::os
