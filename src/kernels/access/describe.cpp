// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/describe.h"

#include <algorithm>
#include <set>

#include "kernels/ptx/parser.h"

namespace firebreak::access {
namespace {

constexpr std::size_t longest_expression = 200;

std::string parameter_name(const KernelSummary& summary, std::uint64_t offset) {
  for (const ptx::Parameter& parameter : summary.parameters) {
    if (offset < parameter.offset_bytes || offset >= parameter.offset_bytes + parameter.size_bytes) continue;
    const std::uint64_t inside = offset - parameter.offset_bytes;
    return inside == 0 ? parameter.name : parameter.name + "." + std::to_string(inside);
  }
  return "parameter byte " + std::to_string(offset);
}

class ExpressionWriter {
 public:
  explicit ExpressionWriter(const KernelSummary& summary) : summary_(summary), pool_(summary.values->pool) {}

  std::string write(ExpressionIndex index) {
    text_.clear();
    append(index, 0);
    if (text_.size() > longest_expression) text_ = text_.substr(0, longest_expression) + "...";
    return text_;
  }

 private:
  static const char* name_of(Operation operation) {
    switch (operation) {
      case Operation::Add:
        return " + ";
      case Operation::Subtract:
        return " - ";
      case Operation::Multiply:
        return "*";
      case Operation::Divide:
        return "/";
      case Operation::Remainder:
        return " mod ";
      case Operation::ShiftLeft:
        return " << ";
      case Operation::ShiftRight:
        return " >> ";
      case Operation::And:
        return " and ";
      case Operation::Or:
        return " or ";
      case Operation::Xor:
        return " xor ";
      case Operation::Minimum:
        return " min ";
      case Operation::Maximum:
        return " max ";
      case Operation::MultiplyHigh:
        return " mulhi ";
      default:
        return nullptr;
    }
  }

  static const char* name_of(ptx::Compare how) {
    switch (how) {
      case ptx::Compare::Eq:
        return " = ";
      case ptx::Compare::Ne:
        return " != ";
      case ptx::Compare::Lt:
        return " < ";
      case ptx::Compare::Le:
        return " <= ";
      case ptx::Compare::Gt:
        return " > ";
      default:
        return " >= ";
    }
  }

  void append_constant(const Expression& node) {
    const unsigned unused = node.width_bits >= 64 || node.width_bits < 2 ? 0U : 64U - node.width_bits;
    text_ += std::to_string(static_cast<std::int64_t>(node.value << unused) >> unused);
  }

  void append(ExpressionIndex index, int depth) {
    if (text_.size() > longest_expression) return;
    if (depth > 64) {
      text_ += "...";
      return;
    }
    const Expression& node = pool_[pool_.resolve(index)];
    if (const char* between = name_of(node.operation); between != nullptr)
      return append_pair(node, between, depth);
    switch (node.operation) {
      case Operation::Constant:
        return append_constant(node);
      case Operation::Parameter:
        text_ += parameter_name(summary_, node.value);
        return;
      case Operation::Special:
        text_ += std::string(ptx::name_of(static_cast<ptx::SpecialRegister>(node.value))).substr(1);
        return;
      case Operation::Variable:
        text_ += summary_.variables[node.value];
        return;
      case Operation::LoopCounter:
        text_ += "iteration" + std::to_string(node.value);
        return;
      case Operation::SignExtend:
      case Operation::ZeroExtend:
      case Operation::Truncate:
        return append(node.operands[0], depth + 1);
      case Operation::Compare:
        return append_pair(node, name_of(node.compare), depth);
      case Operation::Select:
        return append_select(node, depth);
      default:
        return append_other(node);
    }
  }

  void append_pair(const Expression& node, const char* between, int depth) {
    if (depth > 0) text_ += '(';
    append(node.operands[0], depth + 1);
    text_ += between;
    append(node.operands[1], depth + 1);
    if (depth > 0) text_ += ')';
  }

  void append_select(const Expression& node, int depth) {
    text_ += "either(";
    append(node.operands[1], depth + 1);
    text_ += ", ";
    append(node.operands[2], depth + 1);
    text_ += ')';
  }

  void append_other(const Expression& node) {
    switch (node.operation == Operation::Unknown ? node.reason : UnknownReason::Loop) {
      case UnknownReason::Loaded:
        text_ += "(data)";
        return;
      case UnknownReason::Loop:
        text_ += node.operation == Operation::Phi ? "(by path)" : "(own memory)";
        return;
      default:
        text_ += "(computed)";
        return;
    }
  }

  const KernelSummary& summary_;
  const ExpressionPool& pool_;
  std::string text_;
};

std::string place_of(const KernelSummary& summary, const AccessGroup& group) {
  if (summary.values == nullptr) return "[" + std::to_string(group.width_bytes) + " bytes]";
  return "[" + ExpressionWriter(summary).write(group.address) + ", " + std::to_string(group.width_bytes) +
         " bytes]";
}

std::string base_of(const KernelSummary& summary, const AccessGroup& group) {
  switch (group.base.kind) {
    case BaseKind::Parameter:
      return parameter_name(summary, group.base.value) +
             (group.base.has_second ? " or " + parameter_name(summary, group.base.second_value) : "");
    case BaseKind::Variable:
      return summary.variables[group.base.value];
    case BaseKind::Unknown:
      break;
  }
  return "an address that is not known";
}

std::string subject_of(const KernelSummary& summary, const AccessGroup& group) {
  return "line " + std::to_string(group.line) + ", " + summary.instruction_names[group.instruction] +
         ", operand " + std::to_string(group.operand + 1) + " " + place_of(summary, group);
}

std::string reason_of(const KernelSummary& summary, const Decision& decision) {
  const auto first = [&] { return subject_of(summary, summary.groups[decision.first]); };
  const auto second = [&] {
    return decision.second == constant_group
               ? "line " + std::to_string(summary.constant_line) + ", in constant memory,"
               : subject_of(summary, summary.groups[decision.second]);
  };
  switch (decision.reason) {
    case DecisionReason::None:
      return "no byte that it writes may have been read before";
    case DecisionReason::Refused:
      return summary.refusal;
    case DecisionReason::ShortParameters:
      return "the launch has fewer bytes of parameters than the kernel takes";
    case DecisionReason::Atomic:
      return first() + " is atomic: what it does depends on what has been done";
    case DecisionReason::Overlap:
      return first() + " writes what " + second() + " may have read";
    case DecisionReason::WideOverlap:
      return first() + " may write what " + second() +
             " may have read: one of them goes anywhere in its allocation, for all that is known";
    case DecisionReason::UnknownAddress:
      return first() + " may go anywhere";
    case DecisionReason::OutsideMemory:
      return first() + " goes where the process has no memory";
    case DecisionReason::AliasedMemory:
      return first() + " may go to memory that has two addresses";
    case DecisionReason::TooComplicated:
      return first() + " is too complicated, or what comes before it";
    case DecisionReason::ByOrder:
      return first() + " may write elsewhere when threads come in another order";
    case DecisionReason::OwnMemory:
      return "an address in shared or local memory is made of a pointer to elsewhere";
    case DecisionReason::Constants:
      return first() + " may write constant memory, for all that is known";
  }
  return "";
}

const char* verb_of(ptx::EffectKind kind) {
  return kind == ptx::EffectKind::Read ? "reads" : kind == ptx::EffectKind::Write ? "writes" : "updates";
}

std::string condition_of(const KernelSummary& summary, const AccessGroup& group) {
  std::string text;
  if (summary.values == nullptr) return text;
  for (const AccessCondition& condition : group.conditions) {
    const Expression& node = summary.values->pool[summary.values->pool.resolve(condition.predicate)];
    if (node.operation == Operation::Unknown) continue;
    text += (text.empty() ? " where " : " and ") + ExpressionWriter(summary).write(condition.predicate);
  }
  return text.size() > 2 * longest_expression ? " under conditions" : text;
}

// Returns what keeps a launch from being idempotent, each thing once.
std::set<std::string> conditions_of(const KernelSummary& summary) {
  std::set<std::string> found;
  for (const AccessGroup& write : summary.groups) {
    if (write.kind == ptx::EffectKind::Atomic)
      found.insert("an atomic on " + base_of(summary, write) + " happens" + condition_of(summary, write));
    if (write.kind != ptx::EffectKind::Write) continue;
    for (const AccessGroup& read : summary.groups) {
      if (read.kind != ptx::EffectKind::Read) continue;
      const bool in_place = read.address == write.address;
      found.insert("what is written at " + base_of(summary, write) +
                   (in_place ? " is what is read there, in place"
                             : " meets what is read at " + base_of(summary, read)));
    }
  }
  return found;
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Idempotent:
      return "idempotent";
    case Verdict::NotIdempotent:
      return "not idempotent";
    case Verdict::Unknown:
      break;
  }
  return "unknown";
}

std::string describe(const KernelSummary& summary, const Decision& decision) {
  return std::string(to_string(decision.verdict)) + ": " + reason_of(summary, decision);
}

std::string explain(const KernelSummary& summary) {
  std::string text = summary.kernel + ":\n";
  if (!summary.refusal.empty()) return text + "  unknown for each launch: " + summary.refusal + "\n";
  for (const AccessGroup& group : summary.groups)
    text += "  line " + std::to_string(group.line) + ": " + summary.instruction_names[group.instruction] +
            " " + verb_of(group.kind) + " " + place_of(summary, group) + condition_of(summary, group) + "\n";
  const std::set<std::string> conditions = conditions_of(summary);
  text += conditions.empty() ? "  idempotent for each launch\n" : "  idempotent, unless\n";
  for (const std::string& condition : conditions) text += "    " + condition + "\n";
  return text;
}

}  // namespace firebreak::access
