// SPDX-License-Identifier: Apache-2.0
/// The meanings of a source's names while it is parsed: block scopes, register ranges, labels. Internal to
/// src/kernels/ptx.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/ptx/diagnostic.h"
#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

enum class NameKind : std::uint8_t { Register, Symbol, Prototype, CallTargets, BranchTable };

struct NameEntry {
  NameKind kind = NameKind::Symbol;
  Type type = Type::None;  ///< Register
  Symbol symbol;           ///< Symbol
  std::uint32_t index =
      no_index;  ///< Register: no_index until it is used; Prototype, CallTargets, BranchTable
};

/// A stack of scopes; the module's is the lowest. Names are views into the source.
class NameScopes {
 public:
  NameScopes() { open(); }
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  std::size_t depth() const { return scopes_.size(); }
  void close_to(std::size_t depth) { scopes_.resize(depth); }

  /// False: the innermost scope has this name already.
  bool declare(std::string_view name, const NameEntry& entry);
  /// `%r<5>`: %r0 to %r4. False: the innermost scope has a range of this prefix already.
  bool declare_range(std::string_view prefix, std::uint32_t count, Type type);
  /// The innermost meaning; null when there is none. Valid until the next call of a member that is not const.
  NameEntry* find(std::string_view name);

 private:
  struct Range {
    std::uint32_t count = 0;
    Type type = Type::None;
  };
  struct Scope {
    std::unordered_map<std::string_view, NameEntry> exact;
    std::unordered_map<std::string_view, Range> ranges;
  };
  static const Range* find_range(const Scope& scope, std::string_view name);

  std::vector<Scope> scopes_;
};

/// The place to which the instruction index of a label belongs.
struct LabelUse {
  std::string_view name;
  SourceLocation location;
  bool is_table =
      false;  ///< Function::branch_tables[first].targets[second], else instructions[first].operands[second]
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

/// Labels may be used before they are defined; they are visible in the block that defines them and in the
/// blocks inside it.
class LabelScopes {
 public:
  void open() { scopes_.emplace_back(); }
  /// Resolves what this block defines; leaves the rest to the block around it.
  void close(Function& function);
  /// False: the innermost block defines this label already.
  bool define(std::string_view name, std::uint32_t target);
  void use(const LabelUse& label_use) { scopes_.back().uses.push_back(label_use); }
  /// Returns, after the outermost close(), the first use of a label that nobody defines.
  Finding undefined() const;

 private:
  struct Scope {
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::vector<LabelUse> uses;
  };
  std::vector<Scope> scopes_;
  std::vector<LabelUse> undefined_;
};

}  // namespace firebreak::ptx
