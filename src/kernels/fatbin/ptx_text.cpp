// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/ptx_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <unordered_set>
#include <utility>

#include "kernels/fatbin/ptx_addresses.h"
#include "kernels/fatbin/ptx_words.h"

namespace firebreak::fatbin {
namespace {

/// The bytes of ".u32", ".b8" and such; 0: it is no such type.
std::uint64_t bytes_of_type(std::string_view word) {
  if (word.size() < 3 || word[0] != '.' || std::string_view("bsuf").find(word[1]) == std::string_view::npos)
    return 0;
  const std::string_view bits = word.substr(2);
  if (bits == "8") return 1;
  if (bits == "16" || bits == "16x2") return bits == "16" ? 2 : 4;
  if (bits == "32") return 4;
  if (bits == "64") return 8;
  return bits == "128" ? 16 : 0;
}

std::uint64_t number_of(std::string_view word) {
  std::uint64_t value = 0;
  for (const char c : word) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 || value > (std::uint64_t{1} << 40)) return 0;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), words_(text) {}

  Code read() {
    std::string_view before;
    bool has_version = false;
    for (std::string_view word = words_.next(); !word.empty(); word = words_.next()) {
      if (word[0] == '.') {
        const bool is_joined = words_.was_joined() && !before.empty() && is_in_word(before.back());
        has_version = has_version || word == ".version";
        if ((word == ".global" || word == ".const") && !is_joined)
          declaration(word == ".global" ? VariableSpace::Global : VariableSpace::Constant, before);
        if (word == ".func" && before == ".extern") function();
      }
      before = word;
    }
    if (!has_version || words_.is_torn()) meet(Obstacle::Malformed);
    look_for_uses();
    code_.stores_addresses = code_.obstacle != Obstacle::Malformed && may_keep_addresses(text_, names_);
    if (code_.stores_addresses) meet(Obstacle::StoresAddresses);
    return std::move(code_);
  }

 private:
  void meet(Obstacle obstacle) {
    if (!code_.obstacle) code_.obstacle = obstacle;
  }

  /// A name stands once where it is declared; what stands twice is used.
  void look_for_uses() {
    if (code_.variables.empty()) return;
    std::unordered_set<std::string_view> names(names_.begin(), names_.end());
    std::unordered_set<std::string_view> once;
    std::unordered_set<std::string_view> used;
    std::array<bool, 256> is_first{};
    for (const std::string_view name : names) is_first[static_cast<unsigned char>(name[0])] = true;
    Words words(text_);
    for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
      if (!is_first[static_cast<unsigned char>(word[0])]) continue;
      const auto name = names.find(word);
      if (name != names.end() && !once.insert(*name).second) used.insert(*name);
    }
    for (Variable& variable : code_.variables) variable.is_reached = used.contains(variable.name);
  }

  /// ".extern .func (.param .b32 result) name (...)": somebody else defines it.
  void function() {
    int depth = 0;
    for (std::string_view word = words_.next(); !word.empty(); word = words_.next()) {
      if (word == "(") ++depth;
      if (word == ")") --depth;
      if (depth != 0 || word == ")" || word[0] == '.') continue;
      if (const auto obstacle = obstacle_of_function(std::string(word))) meet(*obstacle);
      return;
    }
    meet(Obstacle::Malformed);
  }

  /// ".global .attribute(.managed) .align 4 .v2 .b32 name[4][2] = {1, 2}, other;"
  void declaration(VariableSpace memory, std::string_view linking) {
    std::uint64_t each_bytes = 0;
    std::uint64_t vector = 1;
    for (std::string_view word = words_.next();; word = words_.next()) {
      if (word.empty() || word == ";" || word == "{") return meet(Obstacle::Malformed);
      if (word == ".align") {
        words_.next();
      } else if (word == ".attribute") {
        attribute();
      } else if (word == ".v2" || word == ".v4" || word == ".v8") {
        vector = static_cast<std::uint64_t>(word[2] - '0');
      } else if (word == ".texref" || word == ".samplerref" || word == ".surfref") {
        meet(Obstacle::TextureReferences);
      } else if (word[0] == '.') {
        each_bytes = bytes_of_type(word);
      } else if (is_in_word(word[0]) && !is_digit(word[0])) {
        return names(memory, linking, each_bytes * vector, word);
      }
    }
  }

  void attribute() {
    for (std::string_view word = words_.next(); !word.empty() && word != ")"; word = words_.next()) {
      if (word == ".managed") meet(Obstacle::Managed);
    }
  }

  /// Reads from the first name to the semicolon.
  void names(VariableSpace memory, std::string_view linking, std::uint64_t each_bytes,
             std::string_view name) {
    if (linking == ".extern") meet(Obstacle::NotLinked);
    while (true) {
      Variable& variable = code_.variables.emplace_back();
      variable.name = name;
      variable.memory = memory;
      variable.is_local = linking != ".visible" && linking != ".weak" && linking != ".common";
      if (!names_.insert(variable.name).second) meet(Obstacle::SameName);
      const std::string_view end = rest_of(variable, each_bytes);
      if (end == ";") return;
      if (end != ",") return meet(Obstacle::Malformed);
      name = words_.next();
      if (name.empty() || !is_in_word(name[0])) return meet(Obstacle::Malformed);
    }
  }

  /// "[4][2] = {...}", up to a comma or semicolon outside of it, which is the answer.
  std::string_view rest_of(Variable& variable, std::uint64_t each_bytes) {
    std::uint64_t size_bytes = each_bytes;
    bool is_initialised = false;
    int depth = 0;
    for (std::string_view word = words_.next(); !word.empty(); word = words_.next()) {
      if (depth == 0 && (word == ";" || word == ",")) {
        variable.size_bytes = size_bytes > (std::uint64_t{1} << 40) ? 0 : size_bytes;
        variable.is_literal = is_initialised && is_name_of_literal(variable.name);
        return word;
      }
      if (word == "[" || word == "{" || word == "(") ++depth;
      if (word == "]" || word == "}" || word == ")") --depth;
      is_initialised = is_initialised || word == "=";
      if (is_initialised) {
        initial_value(word);
      } else if (is_digit(word[0]) && size_bytes <= (std::uint64_t{1} << 40)) {
        size_bytes *= std::max<std::uint64_t>(number_of(word), 1);
      }
    }
    return {};
  }

  /// A name there is the address of a function or variable.
  void initial_value(std::string_view word) {
    if (!is_in_word(word[0]) || is_digit(word[0])) return;
    meet(Obstacle::KeepsAddresses);
  }

  std::string_view text_;
  Words words_;
  Code code_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Code code_of_ptx(std::string_view text) { return Reader(text.substr(0, text.find('\0'))).read(); }

}  // namespace firebreak::fatbin
