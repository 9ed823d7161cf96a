// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/dump.h"

#include <array>
#include <cstdio>

namespace firebreak::ptx {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

const char* linkage_word(Linkage linkage) {
  constexpr std::array words{"", ".visible ", ".extern ", ".weak ", ".common "};
  return words[static_cast<std::size_t>(linkage)];
}

std::string extent(const std::vector<std::uint64_t>& dimensions) {
  std::string text;
  for (const std::uint64_t dimension : dimensions)
    text += "[" + (dimension == 0 ? "" : number(dimension)) + "]";
  return text;
}

std::string initial_bytes(const std::vector<std::byte>& bytes) {
  constexpr std::size_t longest = 128;
  std::string text;
  for (std::size_t i = 0; i < bytes.size() && i < longest; ++i) {
    std::array<char, 4> pair{};
    std::snprintf(pair.data(), pair.size(), " %02x", std::to_integer<unsigned>(bytes[i]));
    text += pair.data();
  }
  return text + (bytes.size() > longest ? " ..." : "");
}

std::string relocation_line(const Module& module, const Relocation& relocation) {
  const bool is_function = relocation.symbol.kind == SymbolKind::Function;
  const std::string& name = is_function ? module.functions[relocation.symbol.index].name
                                        : module.variables[relocation.symbol.index].name;
  std::string text = "    at " + number(relocation.offset_bytes) + ": ";
  text += number(relocation.size_bytes) + " bytes of the " + (relocation.generic ? "generic " : "") +
          "address of " + name;
  if (relocation.addend != 0) text += " + " + std::to_string(relocation.addend);
  if (relocation.shift_bits != 0) text += " >> " + number(relocation.shift_bits);
  return text + "\n";
}

std::string variable_lines(const Module& module, const Variable& variable, const char* indent) {
  std::string text = indent + std::string("variable ") + linkage_word(variable.linkage) + "." +
                     name_of(variable.space) + " " + variable.name + extent(variable.dimensions) + ": " +
                     (variable.vector_arity > 1 ? "v" + number(variable.vector_arity) + "." : "") +
                     name_of(variable.type) + ", " + number(variable.size_bytes) + " bytes, align " +
                     number(variable.alignment_bytes);
  if (variable.space == StateSpace::Local || variable.space == StateSpace::Param)
    text += ", offset " + number(variable.offset_bytes);
  if (variable.managed) text += ", managed";
  text += "\n";
  if (!variable.initial.empty()) text += std::string(indent) + "  =" + initial_bytes(variable.initial) + "\n";
  for (const Relocation& relocation : variable.relocations) text += relocation_line(module, relocation);
  return text;
}

std::string parameter_line(const char* what, const Parameter& parameter) {
  std::string text = std::string("  ") + what + " ." + name_of(parameter.space) + " " + parameter.name +
                     extent(parameter.dimensions) + ": " + name_of(parameter.type);
  if (parameter.space == StateSpace::Reg)
    text += parameter.register_index == no_index ? "" : ", register " + number(parameter.register_index);
  else
    text += ", " + number(parameter.size_bytes) + " bytes, offset " + number(parameter.offset_bytes);
  return text + "\n";
}

std::string bound(const char* name, const std::array<std::uint32_t, 3>& extent_of) {
  if (extent_of[0] == 0) return "";
  return std::string("  ") + name + " " + number(extent_of[0]) + ", " + number(extent_of[1]) + ", " +
         number(extent_of[2]) + "\n";
}

std::string bound(const char* name, std::uint32_t value) {
  return value == 0 ? "" : std::string("  ") + name + " " + number(value) + "\n";
}

std::string bound_lines(const LaunchBounds& bounds) {
  return bound("maxntid", bounds.maxntid) + bound("reqntid", bounds.reqntid) +
         bound("reqnctapercluster", bounds.reqnctapercluster) + bound("minnctapersm", bounds.minnctapersm) +
         bound("maxnctapersm", bounds.maxnctapersm) + bound("maxnreg", bounds.maxnreg) +
         bound("maxclusterrank", bounds.maxclusterrank) +
         bound("explicitcluster", bounds.explicitcluster ? 1U : 0U);
}

std::string body_lines(const Module& module, const Function& function) {
  std::string text;
  for (std::size_t i = 0; i < function.registers.size(); ++i)
    text += "  register " + number(i) + " " + function.registers[i].name + ": " +
            name_of(function.registers[i].type) + "\n";
  for (const Variable& variable : function.variables) text += variable_lines(module, variable, "  ");
  for (std::size_t i = 0; i < function.branch_tables.size(); ++i) {
    text += "  table " + number(i) + " " + function.branch_tables[i].name + ":";
    for (const std::uint32_t target : function.branch_tables[i].targets) text += " " + number(target);
    text += "\n";
  }
  std::size_t label = 0;
  for (std::size_t i = 0; i <= function.instructions.size(); ++i) {
    for (; label < function.labels.size() && function.labels[label].target == i; ++label)
      text += "  " + function.labels[label].name + ":\n";
    if (i < function.instructions.size())
      text += "  " + number(i) + " " + dump(module, function, function.instructions[i]) + "\n";
  }
  return text;
}

std::string function_lines(const Module& module, const Function& function) {
  std::string text = linkage_word(function.linkage) + std::string(function.is_entry ? "entry " : "func ") +
                     function.name + (function.no_return ? ", no return" : "") +
                     (function.has_body ? "" : ", declared only") + "\n";
  for (const Parameter& parameter : function.return_parameters) text += parameter_line("return", parameter);
  for (const Parameter& parameter : function.parameters) text += parameter_line("parameter", parameter);
  text += bound_lines(function.bounds);
  if (function.local_frame_bytes != 0)
    text += "  local frame " + number(function.local_frame_bytes) + " bytes\n";
  if (function.argument_area_bytes != 0)
    text += "  argument area " + number(function.argument_area_bytes) + " bytes\n";
  return text + body_lines(module, function);
}

}  // namespace

std::string dump(const Module& module) {
  std::string text = "version " + number(module.version_major) + "." + number(module.version_minor) +
                     ", target " + module.target + ", addresses of " + number(module.address_size_bits) +
                     " bits\n";
  for (const Variable& variable : module.variables) text += variable_lines(module, variable, "");
  for (const Function& function : module.functions) text += function_lines(module, function);
  return text;
}

}  // namespace firebreak::ptx
