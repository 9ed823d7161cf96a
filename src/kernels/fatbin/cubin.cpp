// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/cubin.h"

#include <elf.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "kernels/fatbin/elf_view.h"

namespace firebreak::fatbin {
namespace {

constexpr std::uint16_t machine_cuda = 190;  ///< EM_CUDA
/// Bits of the byte for others' use; cuda-gdb (cuda-tdep.c) names both.
constexpr std::uint8_t other_is_managed = 0x04;
/// The two forms of the file: up to toolkit 12, and since 13.
constexpr std::uint8_t os_abi_before = 0x33;
constexpr std::uint8_t abi_version_before = 7;
constexpr std::uint8_t os_abi_since = 0x41;
constexpr std::uint8_t abi_version_since = 8;

using Section = ElfView::Section;
using Symbol = ElfView::Symbol;

enum class Place { Global, Constant, Shared, Elsewhere };

/// A bank of constant memory of the whole code: a kernel's own banks have its name behind the number.
bool is_bank_of_all(std::string_view name) {
  constexpr std::string_view begin = ".nv.constant";
  if (!name.starts_with(begin) || name.size() == begin.size()) return false;
  const std::string_view number = name.substr(begin.size());
  return std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Place place_of_name(std::string_view name) {
  if (name == ".nv.global" || name == ".nv.global.init") return Place::Global;
  if (name.starts_with(".nv.shared.") || name == ".nv.shared") return Place::Shared;
  return is_bank_of_all(name) ? Place::Constant : Place::Elsewhere;
}

Place place_of(const Section& section) { return place_of_name(section.name); }

class Cubin {
 public:
  explicit Cubin(const ElfView& elf) : elf_(elf) {}

  Code read() {
    const auto symbols = elf_.symbols();
    if (!symbols) return failed(Obstacle::Malformed);
    symbols_ = &*symbols;
    check_form();
    for (const Section& section : elf_.sections()) check_section(section);
    for (const Symbol& symbol : *symbols) take(symbol);
    for (const Section& section : elf_.sections()) follow(section);
    apply_reached_sections();
    check_cover();
    check_names();
    for (auto& [index, variable] : by_symbol_) code_.variables.push_back(std::move(variable));
    return std::move(code_);
  }

 private:
  /// The first one counts.
  void meet(Obstacle obstacle) {
    if (!code_.obstacle) code_.obstacle = obstacle;
  }
  Code failed(Obstacle obstacle) {
    meet(obstacle);
    return std::move(code_);
  }
  const Section& section_of(const Symbol& symbol) const { return elf_.sections()[symbol.section]; }

  void check_form() {
    const bool is_before = elf_.os_abi() == os_abi_before && elf_.abi_version() <= abi_version_before;
    const bool is_since = elf_.os_abi() == os_abi_since && elf_.abi_version() == abi_version_since;
    if (elf_.machine() != machine_cuda || (!is_before && !is_since)) meet(Obstacle::UnknownKind);
    if (elf_.type() == ET_REL) meet(Obstacle::NotLinked);
    if (elf_.type() != ET_REL && elf_.type() != ET_EXEC) meet(Obstacle::UnknownKind);
  }

  void check_section(const Section& section) {
    const bool is_kept = (section.flags & SHF_ALLOC) != 0 && (section.flags & SHF_WRITE) != 0;
    if (!is_kept || section.size_bytes == 0 || place_of(section) != Place::Elsewhere) return;
    if (!is_second_form(section)) meet(Obstacle::UnknownSymbol);
  }

  /// True for the second form of a section. Since compute capability 10.0 a file says everything twice:
  /// ".nv.merc.nv.global.init" is ".nv.global.init", for code that the driver has to fit to a later GPU (seen
  /// in what ptxas 13.0 makes).
  bool is_second_form(const Section& section) const {
    constexpr std::string_view mark = ".nv.merc";
    if (!section.name.starts_with(mark)) return false;
    const Section* const first = elf_.find(section.name.substr(mark.size()));
    return first != nullptr && first->size_bytes == section.size_bytes &&
           place_of(*first) != Place::Elsewhere;
  }

  void take(const Symbol& symbol) {
    const std::size_t index = static_cast<std::size_t>(&symbol - symbols_->data());
    if (symbol.section == 0 && !symbol.is_special) return take_undefined(symbol);
    switch (symbol.type) {
      case STT_SECTION:
      case STT_FILE:
      case STT_FUNC:
        return;
      case STT_NOTYPE:
        // A mark in a section that is no variable's: shared memory that the driver keeps for itself, labels.
        if (symbol.is_special || is_of_variables(section_of(symbol))) meet(Obstacle::UnknownSymbol);
        return;
      case STT_OBJECT:
        return take_object(symbol, index);
      default:
        meet(Obstacle::TextureReferences);
        return;  // STT_CUDA_TEXTURE, STT_CUDA_SURFACE and others
    }
  }

  static bool is_of_variables(const Section& section) {
    const Place place = place_of(section);
    return place == Place::Global || place == Place::Constant;
  }

  void take_undefined(const Symbol& symbol) {
    if (symbol.name.empty() || symbol.name.starts_with(".nv.reservedSmem")) return;
    if (symbol.type == STT_OBJECT) return meet(Obstacle::NotLinked);
    if (const auto obstacle = obstacle_of_function(std::string(symbol.name))) meet(*obstacle);
  }

  void take_object(const Symbol& symbol, std::size_t index) {
    if (symbol.is_special) return meet(Obstacle::NotLinked);
    const Section& section = section_of(symbol);
    const Place place = place_of(section);
    if (place == Place::Shared) return;
    if (place == Place::Elsewhere || symbol.name.empty()) return meet(Obstacle::UnknownSymbol);
    if (symbol.value > section.size_bytes || symbol.size_bytes > section.size_bytes - symbol.value)
      return meet(Obstacle::Malformed);
    if ((symbol.other & other_is_managed) != 0) meet(Obstacle::Managed);
    Variable variable;
    variable.name = symbol.name;
    variable.size_bytes = symbol.size_bytes;
    variable.memory = place == Place::Global ? VariableSpace::Global : VariableSpace::Constant;
    variable.is_local = symbol.binding == STB_LOCAL;
    variable.is_literal = section.name == ".nv.global.init" && is_name_of_literal(variable.name);
    variable.is_reached = false;
    ranges_[symbol.section].emplace_back(symbol.value, symbol.value + symbol.size_bytes);
    by_symbol_.emplace(index, std::move(variable));
  }

  /// Relocations say which addresses the code gets when it is loaded.
  void follow(const Section& section) {
    const bool is_of_ours = section.name.starts_with(".nv.resolvedrel");
    if (section.type != SHT_REL && section.type != SHT_RELA && !is_of_ours) return;
    if (section.name.find("debug") != std::string_view::npos) return;
    const auto relocations = elf_.relocations(section);
    if (!relocations) return meet(Obstacle::Malformed);
    // A bank without variables is where the compiler keeps the addresses that the code uses.
    if (!relocations->empty() && ranges_.contains(section.info)) meet(Obstacle::KeepsAddresses);
    const bool is_into_memory =
        section.info < elf_.sections().size() && is_of_variables(elf_.sections()[section.info]);
    for (const auto& relocation : *relocations) {
      if (relocation.symbol >= symbols_->size()) return meet(Obstacle::Malformed);
      const Symbol& symbol = (*symbols_)[relocation.symbol];
      // A function of its own whose address the code takes, and may store: a call does not need that.
      if (is_into_memory && symbol.type == STT_FUNC && symbol.section != 0) meet(Obstacle::KeepsAddresses);
      reach(symbol, relocation);
    }
  }

  void reach(const Symbol& symbol, const ElfView::Relocation& relocation) {
    const auto found = by_symbol_.find(relocation.symbol);
    if (found != by_symbol_.end()) {
      found->second.is_reached = true;
      // Objects with virtual functions hold the address of such a table, wherever they lie.
      if (found->second.name.starts_with("_ZTV")) meet(Obstacle::KeepsAddresses);
      const bool is_inside = relocation.addend >= 0 && static_cast<std::uint64_t>(relocation.addend) <
                                                           std::max<std::uint64_t>(symbol.size_bytes, 1);
      if (is_inside) return;
    } else if (symbol.is_special || !is_of_variables(section_of(symbol))) {
      return;
    }
    reached_sections_.insert(symbol.section);  // the relocation may mean any of its variables
  }

  void apply_reached_sections() {
    for (auto& [index, variable] : by_symbol_) {
      if (reached_sections_.contains((*symbols_)[index].section)) variable.is_reached = true;
    }
  }

  /// Checks that every byte of global memory belongs to a variable, or lies before one because of its
  /// alignment.
  void check_cover() {
    for (std::uint32_t index = 0; index < elf_.sections().size(); ++index) {
      const Section& section = elf_.sections()[index];
      if (place_of(section) != Place::Global) continue;
      auto covered = std::move(ranges_[index]);
      std::sort(covered.begin(), covered.end());
      covered.emplace_back(section.size_bytes, section.size_bytes);
      std::uint64_t end = 0;
      for (const auto& [from, to] : covered) {
        if (from > end && !is_padding(section, end, from)) meet(Obstacle::UncoveredBytes);
        end = std::max(end, to);
      }
    }
  }

  static bool is_padding(const Section& section, std::uint64_t from, std::uint64_t to) {
    if (to - from >= std::max<std::uint64_t>(section.alignment, 1)) return false;
    if (section.content.empty()) return true;
    const std::string_view between = section.content.substr(from, to - from);
    return between.find_first_not_of('\0') == std::string_view::npos;
  }

  void check_names() {
    std::map<std::string_view, int> count;
    for (const auto& [index, variable] : by_symbol_) {
      if (++count[variable.name] > 1) meet(Obstacle::SameName);
    }
  }

  const ElfView& elf_;
  const std::vector<Symbol>* symbols_ = nullptr;
  std::map<std::size_t, Variable> by_symbol_;
  std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>>
      ranges_;  ///< pieces by section
  std::set<std::uint32_t> reached_sections_;
  Code code_;
};

}  // namespace

Code code_of_cubin(std::string_view cubin) {
  const auto elf = ElfView::of(cubin);
  if (!elf) return {{}, Obstacle::Malformed};
  return Cubin(*elf).read();
}

}  // namespace firebreak::fatbin
