// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/origins.h"

namespace firebreak::access {
namespace {

constexpr std::uint8_t pointer_bits = 64;

Origin nothing() {
  Origin origin;
  origin.is_known = true;
  return origin;
}

Origin at(Place place, std::uint64_t value = 0) {
  Origin origin = nothing();
  origin.place = place;
  origin.value = value;
  return origin;
}

// Returns it as a part of something that does not start there.
ValueOrigins as_other(const Origin& origin) {
  ValueOrigins all = origin.others;
  if (origin.place == Place::Parameter) {
    all.add_words(origin.value, ValueOrigins::word_bytes);
    if (origin.has_second) all.add_words(origin.second_value, ValueOrigins::word_bytes);
  }
  all.has_address = all.has_address || origin.place == Place::Variable || origin.place == Place::OwnMemory ||
                    origin.place == Place::Mixed;
  return all;
}

bool start_together(const Origin& a, const Origin& b) {
  return a.place == b.place && a.value == b.value && a.has_second == b.has_second &&
         a.second_value == b.second_value;
}

Origin with_start_of(const Origin& start, Origin others) {
  Origin result = start;
  result.others.add(others.others);
  return result;
}

Origin sum(const Origin& a, const Origin& b) {
  if (a.place == Place::None) return with_start_of(b, a);
  if (b.place == Place::None) return with_start_of(a, b);
  Origin both = with_start_of(a, b);
  const bool are_parameters = a.place == Place::Parameter && b.place == Place::Parameter;
  if (!are_parameters || a.has_second || b.has_second) return with_start_of(at(Place::Mixed), both);
  both.has_second = true;
  both.second_value = b.value;
  return both;
}

Origin either(const Origin& a, const Origin& b) {
  return start_together(a, b) ? with_start_of(a, b) : with_start_of(at(Place::Mixed), with_start_of(a, b));
}

class OriginFinder {
 public:
  OriginFinder(const ExpressionPool& pool, const std::vector<ValueOrigins>& registers, Budget& budget)
      : pool_(pool), registers_(registers), budget_(budget), origins_(pool.size()) {}

  // Phis go round: until nothing changes. Each changes a few times at most.
  std::vector<Origin> run() {
    for (bool changes = true; changes && !budget_.is_spent();) {
      changes = false;
      for (ExpressionIndex i = 0; i < pool_.size(); ++i) changes = look_at(i) || changes;
    }
    for (Origin& origin : origins_)
      if (!origin.is_known) origin = at(Place::Mixed);
    return std::move(origins_);
  }

 private:
  const Origin& of(ExpressionIndex index) const { return origins_[pool_.resolve(index)]; }

  bool look_at(ExpressionIndex index) {
    budget_.take();
    Origin& known = origins_[index];
    Origin found = origin_of(pool_[index]);
    if (!found.is_known) return false;
    found.others.add(known.others);
    if (known.is_known && !start_together(known, found)) found = with_start_of(at(Place::Mixed), found);
    if (known == found) return false;
    known = found;
    return true;
  }

  Origin origin_of(const Expression& node) {
    switch (node.operation) {
      case Operation::Parameter:
        return parameter(node);
      case Operation::Variable:
        return at(Place::Variable, node.value);
      case Operation::SharedAddress:
      case Operation::LocalAddress:
        return at(Place::OwnMemory);
      case Operation::Unknown:
        return unknown(node);
      case Operation::Phi:
        return joined(pool_.phis[node.value]);
      case Operation::Compare:
      case Operation::Window:
        return nothing();
      default:
        return computed(node);
    }
  }

  static Origin parameter(const Expression& node) {
    if (node.width_bits == pointer_bits) return at(Place::Parameter, node.value);
    Origin part = nothing();
    part.others.add_words(node.value, node.width_bits / 8U);
    return part;
  }

  Origin unknown(const Expression& node) const {
    const std::uint32_t register_index = pool_.source_of(node).register_index;
    Origin origin = nothing();
    if (register_index != ptx::no_index)
      origin.others = registers_[register_index];
    else
      origin.others.is_any = origin.others.has_address = true;
    return origin;
  }

  Origin joined(const PhiNode& phi) {
    budget_.take(phi.operands.size());
    if (phi.replacement != no_expression) return of(phi.replacement);
    Origin all;
    for (const ExpressionIndex operand : phi.operands) {
      const Origin& one = of(operand);
      if (!one.is_known) continue;
      all = all.is_known ? either(all, one) : one;
    }
    return phi.operands.empty() ? at(Place::Mixed) : all;
  }

  Origin computed(const Expression& node) const {
    for (const ExpressionIndex operand : node.operands)
      if (operand != no_expression && !of(operand).is_known) return {};
    if (node.operation == Operation::Add) return sum(of(node.operands[0]), of(node.operands[1]));
    if (node.operation == Operation::Select) return either(of(node.operands[1]), of(node.operands[2]));
    Origin result = nothing();
    const bool subtracts = node.operation == Operation::Subtract;
    if (subtracts) result = of(node.operands[0]);
    for (std::size_t i = subtracts ? 1 : 0; i < node.operands.size(); ++i)
      if (node.operands[i] != no_expression) result.others.add(as_other(of(node.operands[i])));
    return result;
  }

  const ExpressionPool& pool_;
  const std::vector<ValueOrigins>& registers_;
  Budget& budget_;
  std::vector<Origin> origins_;
};

}  // namespace

std::vector<Origin> find_origins(const ExpressionPool& pool, const std::vector<ValueOrigins>& registers,
                                 Budget& budget) {
  return OriginFinder(pool, registers, budget).run();
}

}  // namespace firebreak::access
