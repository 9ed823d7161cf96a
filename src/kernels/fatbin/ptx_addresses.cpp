// SPDX-License-Identifier: Apache-2.0
#include "kernels/fatbin/ptx_addresses.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/fatbin/code.h"
#include "kernels/fatbin/ptx_words.h"

namespace firebreak::fatbin {
namespace {

using Word = std::string_view;
using WordsOf = std::vector<Word>;

enum class FlowKind {
  Compute,       ///< registers of registers, addresses and parameters
  Load,          ///< from memory that may be local, or a parameter
  Keep,          ///< a value goes into memory
  KeepLocal,     ///< into memory that ends with the function's call
  Call,          ///< of `callee`, with the sources as arguments
  GiveBack,      ///< a result of a function that is no kernel
  TakeArgument,  ///< of such a function
};

/// One instruction does this with values.
struct Flow {
  FlowKind kind = FlowKind::Compute;
  WordsOf into;
  WordsOf from;
  Word callee;
};

struct Function {
  Word name;
  bool is_kernel = false;
  std::unordered_set<Word> parameters;  ///< those that lie in memory
  std::vector<Flow> flows;
  std::unordered_set<Word> addresses;  ///< registers and parameters that may hold one
  bool has_some_in_local = false;
  bool points_to_parameters = false;
};

bool is_identifier(Word word) { return is_in_word(word[0]) && !is_digit(word[0]); }

/// Words between two commas.
struct Operand {
  WordsOf words;
  bool is_memory() const { return !words.empty() && words[0] == "["; }
  bool is_list() const { return !words.empty() && words[0] == "("; }

  /// Names in it that stand for values.
  void add_values_to(WordsOf& all) const {
    if (is_memory()) return;
    for (const Word word : words) {
      if (is_identifier(word)) all.push_back(word);
    }
  }
};

std::vector<Operand> operands_in(std::span<const Word> words) {
  std::vector<Operand> all(1);
  int depth = 0;
  for (const Word word : words) {
    if (word == "[" || word == "{" || word == "(") ++depth;
    if (word == "]" || word == "}" || word == ")") --depth;
    if (word == "," && depth == 0) {
      all.emplace_back();
    } else {
      all.back().words.push_back(word);
    }
  }
  return all;
}

/// One instruction: its name, what follows that with a dot, and the rest.
struct Instruction {
  Word name;
  std::span<const Word> modifiers;
  std::vector<Operand> operands;

  explicit Instruction(std::span<const Word> words) {
    name = words[0];
    std::size_t end = 1;
    // "::" as in ".L2::cache_hint" comes as single characters.
    while (end < words.size() &&
           (words[end][0] == '.' || words[end] == ":" || (end > 1 && words[end - 1] == ":")))
      ++end;
    modifiers = words.subspan(1, end - 1);
    operands = operands_in(words.subspan(end));
  }
  bool has(Word modifier) const { return std::ranges::find(modifiers, modifier) != modifiers.end(); }
  bool is_one_of(std::span<const Word> names) const { return std::ranges::find(names, name) != names.end(); }
};

/// Their answer is no address, whatever they are given.
constexpr std::array<Word, 8> answering{"setp", "set",   "isspacep", "testp",
                                        "vote", "match", "elect",    "activemask"};
constexpr std::array<Word, 5> elsewhere{".global", ".shared", ".const", ".param", ".tex"};

/// Reads the functions of a text.
class FunctionReader {
 public:
  explicit FunctionReader(Word text) : words_(text) {}

  std::deque<Function> read() {
    while (!word_.empty()) {
      if (word_ == ".entry" || word_ == ".func") {
        function(word_ == ".entry");
      } else if (word_ == "{") {
        skip_block();
      } else {
        step();
      }
    }
    return std::move(functions_);
  }
  /// The text ended within a function.
  bool is_cut() const { return is_cut_; }
  /// Names of functions, with those that somebody else defines.
  const std::unordered_set<Word>& declared() const { return declared_; }

 private:
  void step() { word_ = words_.next(); }

  /// An initial value, or a section for debuggers.
  void skip_block() {
    int depth = 0;
    do {
      if (word_ == "{") ++depth;
      if (word_ == "}") --depth;
      step();
    } while (depth > 0 && !word_.empty());
  }

  void function(bool is_kernel) {
    Function made;
    made.is_kernel = is_kernel;
    int depth = 0;
    bool is_in_memory = true;
    for (step(); !word_.empty() && word_ != "{" && word_ != ";"; step()) {
      if (word_ == "(") ++depth;
      if (word_ == ")") --depth;
      if (word_ == ".reg" || word_ == ".param") is_in_memory = word_ == ".param";
      if (!is_identifier(word_)) continue;
      if (depth > 0) take_parameter(made, is_in_memory);
      if (depth == 0 && made.name.empty()) made.name = word_;
    }
    declared_.insert(made.name);
    if (word_ != "{") return;
    step();
    functions_.push_back(std::move(made));
    body();
  }

  /// What stands before the name is a result.
  void take_parameter(Function& made, bool is_in_memory) const {
    if (is_in_memory) made.parameters.insert(word_);
    if (made.is_kernel) return;
    Flow& flow = made.flows.emplace_back();
    flow.kind = made.name.empty() ? FlowKind::GiveBack : FlowKind::TakeArgument;
    (made.name.empty() ? flow.from : flow.into) = {word_};
  }

  void body() {
    blocks_.assign(1, {});
    std::vector<Word> statement;
    int braces = 0;  // of a vector
    for (; !blocks_.empty(); step()) {
      if (word_.empty()) {
        is_cut_ = true;
        return;
      }
      if (statement.empty() && word_ == ".loc") skip_place();
      if (word_ == "{" && statement.empty()) {
        blocks_.emplace_back();
      } else if (word_ == "}" && braces == 0) {
        blocks_.pop_back();
        statement.clear();
      } else if (word_ == ";") {
        if (!statement.empty()) note(statement);
        statement.clear();
      } else if (word_ == ":" && statement.size() == 1) {
        statement.clear();  // a label
      } else {
        braces += word_ == "{" ? 1 : word_ == "}" ? -1 : 0;
        statement.push_back(word_);
      }
    }
  }

  /// ".loc 1 23 5, function_name $name + 3, inlined_at 1 20 3": no semicolon ends it.
  void skip_place() {
    while (!word_.empty()) {
      if (word_ == ".loc" || word_ == "+" || is_digit(word_[0])) {
        step();
        continue;
      }
      if (word_ != ",") return;
      step();
      const bool has_name = word_ == "function_name";
      step();
      if (has_name) step();
    }
  }

  void note(std::vector<Word>& statement) {
    std::span<const Word> words(statement);
    if (words[0] == "@") words = words.subspan(words.size() > 1 && words[1] == "!" ? 3 : 2);
    if (words.empty()) return;
    if (words[0] == ".param") return declare(words);
    if (words[0][0] == '.') return;  // registers, memory, tables of targets
    const Instruction instruction(words);
    if (instruction.name == "call") return call(instruction);
    if (instruction.operands[0].words.empty()) return;
    instruction.operands[0].is_memory() ? put(instruction) : compute(instruction);
  }

  /// Parameters of calls have the same names in each block.
  void declare(std::span<const Word> words) {
    for (const Word word : words) {
      if (!is_identifier(word)) continue;
      names_.push_back(std::string(word) + "#" + std::to_string(names_.size()));
      blocks_.back()[word] = names_.back();
    }
  }
  Word parameter(Word name) const {
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
      if (const auto found = block->find(name); found != block->end()) return found->second;
    }
    return name;
  }
  bool is_own_parameter(Word name) const {
    return parameter(name) == name && functions_.back().parameters.contains(name);
  }

  Flow& add(FlowKind kind) {
    functions_.back().flows.emplace_back();
    functions_.back().flows.back().kind = kind;
    return functions_.back().flows.back();
  }

  /// "st.global.u64 [address], value", and all others whose first operand is memory.
  void put(const Instruction& instruction) {
    WordsOf values;
    for (const Operand& operand : instruction.operands) operand.add_values_to(values);
    if (values.empty()) return;
    const bool is_local = instruction.name == "st" && instruction.has(".local");
    if (instruction.name == "st" && instruction.has(".param"))
      return add_flow(FlowKind::Compute, {parameter(first_name_in(instruction.operands[0]))},
                      std::move(values));
    add(is_local ? FlowKind::KeepLocal : FlowKind::Keep).from = std::move(values);
  }

  static Word first_name_in(const Operand& operand) {
    const auto found = std::ranges::find_if(operand.words, is_identifier);
    return found == operand.words.end() ? Word("?") : *found;
  }

  void compute(const Instruction& instruction) {
    if (instruction.is_one_of(answering)) return;
    const auto& operands = instruction.operands;
    WordsOf into;
    operands[0].add_values_to(into);
    WordsOf from;
    bool has_memory = false;
    for (std::size_t i = 1; i < operands.size(); ++i) {
      has_memory = has_memory || operands[i].is_memory();
      if (instruction.name == "selp" && i == 3) continue;  // which of the two
      operands[i].add_values_to(from);
    }
    if (std::ranges::any_of(from, [&](Word name) { return is_own_parameter(name); }))
      functions_.back().points_to_parameters = true;
    if (!has_memory) {
      if (!from.empty()) add_flow(FlowKind::Compute, std::move(into), std::move(from));
      return;
    }
    if (!from.empty()) add(FlowKind::Keep).from = std::move(from);  // atom: what it stores
    load(instruction, std::move(into));
  }

  void load(const Instruction& instruction, WordsOf into) {
    if (instruction.name == "ld" && instruction.has(".param"))
      return add_flow(FlowKind::Compute, std::move(into),
                      {parameter(first_name_in(instruction.operands[1]))});
    const auto is_elsewhere = [&](Word space) { return instruction.has(space); };
    if (!std::ranges::any_of(elsewhere, is_elsewhere)) add_flow(FlowKind::Load, std::move(into), {});
  }

  void add_flow(FlowKind kind, WordsOf into, WordsOf from) {
    Flow& flow = add(kind);
    flow.into = std::move(into);
    flow.from = std::move(from);
  }

  /// "call (result), name, (arguments)": either list may be missing.
  void call(const Instruction& instruction) {
    Flow& flow = add(FlowKind::Call);
    bool has_callee = false;
    for (const Operand& operand : instruction.operands) {
      WordsOf names;
      for (const Word word : operand.words) {
        if (is_identifier(word)) names.push_back(parameter(word));
      }
      if (!operand.is_list()) {
        if (!has_callee && !names.empty()) flow.callee = names[0];
        has_callee = true;
      } else {
        WordsOf& list = has_callee ? flow.from : flow.into;
        list.insert(list.end(), names.begin(), names.end());
      }
    }
  }

  Words words_;
  Word word_ = words_.next();
  std::deque<Function> functions_;
  std::unordered_set<Word> declared_;
  std::vector<std::unordered_map<Word, Word>> blocks_;  ///< parameters for calls, by their names
  std::deque<std::string> names_;                       ///< what flows call those
  bool is_cut_ = false;
};

/// Goes through all flows until nothing new comes to hold an address.
class Spread {
 public:
  Spread(std::deque<Function>& functions, const std::unordered_set<std::string>& variables,
         std::unordered_set<Word> declared)
      : functions_(functions), names_(variables.begin(), variables.end()), elsewhere_(std::move(declared)) {
    for (const Function& function : functions) {
      names_.insert(function.name);
      elsewhere_.erase(function.name);
    }
  }

  bool reaches_memory() {
    do {
      has_changed_ = false;
      for (Function& function : functions_) {
        for (const Flow& flow : function.flows) follow(function, flow);
      }
    } while (has_changed_ && !is_kept_);
    return is_kept_;
  }

 private:
  void follow(Function& function, const Flow& flow) {
    const bool is_some = std::ranges::any_of(
        flow.from, [&](Word name) { return names_.contains(name) || function.addresses.contains(name); });
    switch (flow.kind) {
      case FlowKind::Compute:
        return take(function, flow, is_some);
      case FlowKind::Load:
        return take(function, flow,
                    function.has_some_in_local || is_some_in_any_local_ ||
                        (function.points_to_parameters && is_some_argument_));
      case FlowKind::Keep:
        return set(is_kept_, is_some);
      case FlowKind::KeepLocal:  // it may be the caller's
        return set(function.is_kernel ? function.has_some_in_local : is_some_in_any_local_, is_some);
      case FlowKind::GiveBack:
        return set(is_some_result_, is_some);
      case FlowKind::TakeArgument:
        return take(function, flow, is_some_argument_);
      case FlowKind::Call:
        return call(function, flow, is_some);
    }
  }

  /// What is defined elsewhere may do anything, but for what is known to keep nothing.
  void call(Function& function, const Flow& flow, bool is_some) {
    const bool is_elsewhere = elsewhere_.contains(flow.callee);
    if (is_elsewhere && !obstacle_of_function(std::string(flow.callee))) return;
    set(is_kept_, is_elsewhere && (is_some || function.has_some_in_local));
    set(is_some_argument_, is_some);
    set(is_some_in_any_local_, function.has_some_in_local);
    take(function, flow, is_elsewhere || is_some_result_);
  }

  void take(Function& function, const Flow& flow, bool is_address) {
    if (!is_address) return;
    for (const Word name : flow.into) has_changed_ = function.addresses.insert(name).second || has_changed_;
  }
  void set(bool& what, bool is_so) {
    has_changed_ = has_changed_ || (is_so && !what);
    what = what || is_so;
  }

  std::deque<Function>& functions_;
  std::unordered_set<Word> names_;
  std::unordered_set<Word> elsewhere_;  ///< functions that are not defined here
  bool is_some_argument_ = false;       ///< of a call, whichever
  bool is_some_result_ = false;
  bool is_some_in_any_local_ = false;
  bool is_kept_ = false;
  bool has_changed_ = false;
};

}  // namespace

bool may_keep_addresses(std::string_view text, const std::unordered_set<std::string>& variables) {
  FunctionReader reader(text);
  std::deque<Function> functions = reader.read();
  return reader.is_cut() || Spread(functions, variables, reader.declared()).reaches_memory();
}

}  // namespace firebreak::fatbin
