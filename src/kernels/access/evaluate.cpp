// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/evaluate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

namespace firebreak::access {
namespace {

using ptx::Compare;
using ptx::SpecialRegister;

// A quotient of something unknown is bounded. Where the bound is larger, it says less than that the address
// stays inside its allocation.
constexpr std::uint8_t small_range_bits = 25;

// Returns, for an unsigned value, how many numbers have no more bits.
Wide next_power(Wide value) {
  Wide power = 1;
  while (power <= value) power *= 2;
  return power;
}

bool is_power_of_two(Wide value) { return value > 0 && (value & (value - 1)) == 0; }

// How often loops go round, as far as is asked: the greatest value of each counter. Others: 0. Of a loop that
// is over the counter has one value, which is not known.
struct LoopLasts {
  struct Loop {
    std::uint64_t loop = 0;
    Wide last = 0;
    bool is_bounded = false;  ///< the test that ends it is this constraint, if it says anything
    std::size_t constraint = ExactPlace::most_constraints;
  };

  Loop* find(std::uint64_t loop) {
    for (std::size_t i = 0; i < count; ++i)
      if (loops[i].loop == loop) return &loops[i];
    return nullptr;
  }

  bool is_around(std::uint64_t loop) const {
    return std::find(around.begin(), around.end(), loop) != around.end();
  }

  std::span<const std::uint32_t> around;
  std::size_t count = 0;
  std::array<Loop, 8> loops;
  bool has_all_rounds = true;  ///< false: some loop may go round more often than its counter says
};

class Evaluator {
 public:
  /// Makes an evaluator; with `lasts` counters take all their values, and nothing is narrowed.
  Evaluator(const LaunchArguments& launch, std::span<Affine> values, LoopLasts* lasts = nullptr)
      : launch_(launch), values_(values), lasts_(lasts) {}

  // The value of `result` from now on. False: the access does not happen.
  bool run(const ProgramStep& step, StepIndex result) {
    switch (step.kind) {
      case StepKind::Evaluate:
        new (&values_[result]) Affine(value_of(step));  // made where it stays
        return true;
      case StepKind::Hull:
        values_[result] = hull(values_[step.a], values_[step.b], step.variable);
        return true;
      case StepKind::Require:
        return !values_[step.a].is_constant() || values_[step.a].base != 0;
      case StepKind::Restrict:
        return narrow(step, result);
      case StepKind::Count:
        return count(step, result);
    }
    return true;
  }

  Affine fitted(StepIndex index, const ProgramStep& step) const {
    return fit(index, step.operand_width_bits, step.is_signed, step);
  }
  Affine& value(StepIndex index) { return values_[index]; }

 private:
  Affine fit(StepIndex index, std::uint8_t width_bits, bool is_signed, const ProgramStep& step) const {
    // Two operands that do not fit are not the same because of that.
    const std::uint32_t own = index == step.b ? 1 : 2;
    return normalise(values_[index], width_bits, is_signed, step.variable + own);
  }

  // Constants and parameters as signed numbers: a negative stride stays a small one.
  static Affine signed_constant(std::uint64_t bits, std::uint8_t width_bits) {
    if (width_bits == 1) return Affine::constant(static_cast<Wide>(bits & 1U));
    const unsigned unused = 64U - width_bits;
    return Affine::constant(static_cast<std::int64_t>(bits << unused) >> unused);
  }

  Affine parameter(const ProgramStep& step) const {
    std::uint64_t bits = 0;
    const std::size_t bytes = step.width_bits / 8U;
    if (step.value > launch_.parameters.size() || bytes > launch_.parameters.size() - step.value)
      return Affine::anything(step.width_bits, UnknownReason::Undefined, step.variable);
    std::memcpy(&bits, launch_.parameters.data() + step.value, bytes);
    return signed_constant(bits, step.width_bits);
  }

  Affine special(const ProgramStep& step) const {
    const auto which = static_cast<SpecialRegister>(step.value);
    const auto axis = [&](std::uint32_t count) {
      return Affine::range(0, Wide{count} - 1, 1, static_cast<std::uint32_t>(step.value));
    };
    const auto index = [&](SpecialRegister first) {
      return static_cast<std::size_t>(step.value) - static_cast<std::size_t>(first);
    };
    if (which >= SpecialRegister::TidX && which <= SpecialRegister::TidZ)
      return axis(launch_.block[index(SpecialRegister::TidX)]);
    if (which >= SpecialRegister::NtidX && which <= SpecialRegister::NtidZ)
      return Affine::constant(launch_.block[index(SpecialRegister::NtidX)]);
    if (which >= SpecialRegister::CtaidX && which <= SpecialRegister::CtaidZ)
      return axis(launch_.grid[index(SpecialRegister::CtaidX)]);
    if (which >= SpecialRegister::NctaidX && which <= SpecialRegister::NctaidZ)
      return Affine::constant(launch_.grid[index(SpecialRegister::NctaidX)]);
    if (which == SpecialRegister::Laneid) return axis(32);
    return Affine::anything(step.width_bits, UnknownReason::Computed, step.variable);
  }

  Affine counter(const ProgramStep& step) const {
    const std::uint32_t variable = first_loop_variable + static_cast<std::uint32_t>(step.value);
    Affine result;
    if (lasts_ != nullptr && !lasts_->is_around(step.value))
      return Affine::anything(step.width_bits, UnknownReason::Loop, step.variable);
    if (lasts_ != nullptr) {
      const LoopLasts::Loop* loop = lasts_->find(step.value);
      return Affine::range(0, loop == nullptr ? 0 : loop->last, 1, variable);
    }
    result.axis_count = 1;
    result.axes[0] = {variable, 1, 0};
    if (step.is_signed) return result;
    result.axes[0].last = (Wide{1} << step.width_bits) - 1;
    result.unknown = UnknownReason::Loop;
    return result;
  }

  Affine leaf(const ProgramStep& step) const {
    switch (step.operation) {
      case Operation::Constant:
        return signed_constant(step.value, step.width_bits);
      case Operation::Parameter:
        return parameter(step);
      case Operation::Special:
        return special(step);
      case Operation::Variable:
        if (step.value < launch_.variable_addresses.size() && launch_.variable_addresses[step.value] != 0)
          return Affine::constant(static_cast<Wide>(launch_.variable_addresses[step.value]));
        return Affine::anything(step.width_bits, UnknownReason::Computed, step.variable);
      case Operation::LoopCounter:
        return counter(step);
      default:
        return Affine::anything(step.width_bits,
                                step.reason == UnknownReason::None ? UnknownReason::Computed : step.reason,
                                step.variable);
    }
  }

  Affine value_of(const ProgramStep& step) const {
    switch (step.operation) {
      case Operation::Add:
      case Operation::Subtract:
        return add(values_[step.a], values_[step.b], step.operation == Operation::Subtract, step.width_bits,
                   step.variable);
      case Operation::Multiply:
        return multiply(values_[step.a], values_[step.b], step.width_bits, step.variable);
      case Operation::MultiplyHigh:
        return multiply_high(step);
      case Operation::Divide:
      case Operation::Remainder:
        return divide(step);
      case Operation::ShiftLeft:
      case Operation::ShiftRight:
        return shift(step);
      case Operation::And:
      case Operation::Or:
      case Operation::Xor:
        return step.width_bits == 1 ? combine(step) : bits(step);
      case Operation::Minimum:
      case Operation::Maximum:
        return extreme(step);
      case Operation::SignExtend:
      case Operation::ZeroExtend:
        return fit(step.a, step.operand_width_bits, step.operation == Operation::SignExtend, step);
      case Operation::Truncate:
        return values_[step.a].unknown == UnknownReason::None ? values_[step.a]
                                                              : fit(step.a, step.width_bits, false, step);
      case Operation::Select:
        return choose(step);
      case Operation::Compare:
        return compare(step);
      default:
        return leaf(step);
    }
  }

  Affine multiply_high(const ProgramStep& step) const {
    const Affine product = multiply(fit(step.a, step.width_bits, step.is_signed, step),
                                    fit(step.b, step.width_bits, step.is_signed, step),
                                    static_cast<std::uint8_t>(64), step.variable);
    if (product.unknown != UnknownReason::None)
      return Affine::anything(step.width_bits, product.unknown, step.variable);
    return divide_by(product, Wide{1} << step.width_bits, false, step.variable);
  }

  Affine divide(const ProgramStep& step) const {
    const Affine a = fit(step.a, step.width_bits, step.is_signed, step);
    const Affine b = fit(step.b, step.width_bits, step.is_signed, step);
    const bool is_plain = b.is_constant() && b.base > 0;
    if (!is_plain) return Affine::anything(step.width_bits, UnknownReason::Computed, step.variable);
    if (step.operation == Operation::Divide) {
      Affine quotient = divide_by(a, b.base, true, step.variable);
      forget_doubt(quotient, small_range_bits);
      return quotient;
    }
    if (a.low() >= 0) return floor_modulo(a, b.base, step.variable);
    Affine result = Affine::range(1 - b.base, a.high() > 0 ? b.base - 1 : Wide{0}, 1, step.variable);
    return result;
  }

  Affine shift(const ProgramStep& step) const {
    const Affine by = fit(step.b, 32, false, step);
    if (!by.is_constant()) return Affine::anything(step.width_bits, UnknownReason::Computed, step.variable);
    const Wide amount = std::min<Wide>(by.base, step.width_bits);
    if (step.operation == Operation::ShiftLeft)
      return amount == step.width_bits
                 ? Affine::constant(0)
                 : scale(values_[step.a], Wide{1} << amount, step.width_bits, step.variable);
    Affine quotient = divide_by(fit(step.a, step.width_bits, step.is_signed, step), Wide{1} << amount, false,
                                step.variable);
    forget_doubt(quotient, small_range_bits);
    return quotient;
  }

  Affine combine(const ProgramStep& step) const {
    const Affine& a = values_[step.a];
    const Affine& b = values_[step.b];
    const bool is_or = step.operation == Operation::Or;
    if (step.operation != Operation::Xor) {
      const Wide decides = is_or ? 1 : 0;
      if (a.is_constant()) return a.base == decides ? a : b;
      if (b.is_constant()) return b.base == decides ? b : a;
    } else if (a.is_constant() && b.is_constant()) {
      return Affine::constant(a.base != b.base ? 1 : 0);
    }
    return Affine::anything(1, UnknownReason::None, step.variable);
  }

  Affine mask(const Affine& a, Wide with, const ProgramStep& step) const {
    const Wide span = Wide{1} << step.width_bits;
    if (is_power_of_two(with + 1)) return floor_modulo(a, with + 1, step.variable);
    const Affine positive = normalise(a, step.width_bits, false, step.variable);
    if (is_power_of_two(span - with)) {
      const Wide unit = span - with;
      return Affine::range(floor_divide(positive.low(), unit) * unit,
                           floor_divide(positive.high(), unit) * unit, unit, step.variable);
    }
    return Affine::range(0, std::min(positive.high(), with), with & -with, step.variable);
  }

  Affine bits(const ProgramStep& step) const {
    const Affine a = fit(step.a, step.width_bits, false, step);
    const Affine b = fit(step.b, step.width_bits, false, step);
    const bool both = a.is_constant() && b.is_constant();
    if (step.operation == Operation::And) {
      if (both) return Affine::constant(a.base & b.base);
      if (b.is_constant()) return mask(values_[step.a], b.base, step);
      return Affine::range(0, std::min(a.high(), b.high()), 1, step.variable);
    }
    if (both) return Affine::constant(step.operation == Operation::Or ? a.base | b.base : a.base ^ b.base);
    // The values share no bit: a sum.
    for (const auto& [low, high] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      const Wide unit = next_power(low->high());
      if (floor_modulo(Affine::constant(high->base), unit, 0).base == 0 && high->step() % unit == 0)
        return add(a, b, false, step.width_bits, step.variable);
    }
    Affine result = Affine::range(0, next_power(std::max(a.high(), b.high())) - 1, 1, step.variable);
    result.unknown = a.unknown != UnknownReason::None ? a.unknown : b.unknown;
    return result;
  }

  static void forget_doubt(Affine& value, std::uint8_t width_bits) {
    if (value.high() - value.low() < (Wide{1} << (width_bits - 1))) value.unknown = UnknownReason::None;
  }

  Affine extreme(const ProgramStep& step) const {
    const Affine a = fit(step.a, step.width_bits, step.is_signed, step);
    const Affine b = fit(step.b, step.width_bits, step.is_signed, step);
    const bool is_minimum = step.operation == Operation::Minimum;
    if (a.high() <= b.low()) return is_minimum ? a : b;
    if (b.high() <= a.low()) return is_minimum ? b : a;
    Affine result =
        is_minimum
            ? Affine::range(std::min(a.low(), b.low()), std::min(a.high(), b.high()), 1, step.variable)
            : Affine::range(std::max(a.low(), b.low()), std::max(a.high(), b.high()), 1, step.variable);
    result.unknown = a.unknown != UnknownReason::None ? a.unknown : b.unknown;
    forget_doubt(result, step.width_bits);
    return result;
  }

  Affine choose(const ProgramStep& step) const {
    const Affine& predicate = values_[step.a];
    if (predicate.is_constant()) return values_[predicate.base != 0 ? step.b : step.c];
    return hull(values_[step.b], values_[step.c], step.variable);
  }

  Affine compare(const ProgramStep& step) const {
    const Affine a = fit(step.a, step.operand_width_bits, step.is_signed, step);
    const Affine b = fit(step.b, step.operand_width_bits, step.is_signed, step);
    const auto answer = [&](bool yes, bool no) {
      if (yes) return Affine::constant(1);
      return no ? Affine::constant(0) : Affine::anything(1, UnknownReason::None, step.variable);
    };
    Wide low = a.low() - b.high();
    Wide high = a.high() - b.low();
    if (low <= 0 && high >= 0 && low != high) {  // variables that both have may tell more
      const Affine difference = add(a, b, true, 64, step.variable);
      low = difference.low();
      high = difference.high();
    }
    switch (step.compare) {
      case Compare::Eq:
        return answer(low == 0 && high == 0, low > 0 || high < 0);
      case Compare::Ne:
        return answer(low > 0 || high < 0, low == 0 && high == 0);
      case Compare::Lt:
        return answer(high < 0, low >= 0);
      case Compare::Le:
        return answer(high <= 0, low > 0);
      case Compare::Gt:
        return answer(low > 0, high <= 0);
      case Compare::Ge:
        return answer(low >= 0, high < 0);
      default:
        return Affine::anything(1, UnknownReason::None, step.variable);
    }
  }

  bool narrow(const ProgramStep& step, StepIndex result) {
    values_[result] = values_[step.c];
    Affine value = fit(step.c, step.operand_width_bits, step.is_signed, step);
    const Affine bound = fit(step.b, step.operand_width_bits, step.is_signed, step);
    if (bound.unknown != UnknownReason::None) return true;
    Wide low = value.low();
    Wide high = value.high();
    switch (step.compare) {
      case Compare::Lt:
        high = bound.high() - 1;
        break;
      case Compare::Le:
        high = bound.high();
        break;
      case Compare::Gt:
        low = bound.low() + 1;
        break;
      case Compare::Ge:
        low = bound.low();
        break;
      case Compare::Eq:
        low = bound.low();
        high = bound.high();
        break;
      case Compare::Ne:
        if (!bound.is_constant()) return true;
        if (bound.base == low) low += 1;
        if (bound.base == high) high -= 1;
        break;
      default:
        return true;
    }
    if (!restrict_to(value, low, high, step.variable)) return false;
    forget_doubt(value, step.operand_width_bits);
    values_[result] = value;
    return true;
  }

  static Wide take_stride(Affine& value, std::uint32_t variable) {
    for (std::size_t i = 0; i < value.axis_count; ++i) {
      if (value.axes[i].variable != variable) continue;
      const Wide stride = value.axes[i].stride;
      value.axes[i] = value.axes[static_cast<std::size_t>(value.axis_count - 1)];
      --value.axis_count;
      return stride;
    }
    return 0;
  }

  // How many more iterations there may be after the first; less than 0: no bound.
  Wide rounds(const ProgramStep& step) const {
    constexpr Wide no_bound = -1;
    Affine a = fit(step.a, step.operand_width_bits, step.is_signed, step);
    Affine b = fit(step.b, step.operand_width_bits, step.is_signed, step);
    if (a.unknown != UnknownReason::None || b.unknown != UnknownReason::None) return no_bound;
    const std::uint32_t variable = first_loop_variable + static_cast<std::uint32_t>(step.value);
    Wide stride = take_stride(a, variable);
    const Wide other_stride = take_stride(b, variable);
    if ((stride == 0) == (other_stride == 0)) return no_bound;
    Compare how = step.compare;
    if (stride == 0) {  // a moving right side counts as if it stood on the left
      std::swap(a, b);
      stride = other_stride;
      how = how == Compare::Lt   ? Compare::Gt
            : how == Compare::Gt ? Compare::Lt
            : how == Compare::Le ? Compare::Ge
            : how == Compare::Ge ? Compare::Le
                                 : how;
    }
    if (how == Compare::Ne) return rounds_until_equal(a, b, stride, step);
    const bool grows = how == Compare::Lt || how == Compare::Le;
    if (how == Compare::Eq || grows != (stride > 0)) return no_bound;
    const Wide inclusive = how == Compare::Le || how == Compare::Ge ? 1 : 0;
    const Wide size = stride > 0 ? stride : -stride;
    // The first value that fails the test must not wrap around and pass it.
    const auto [lowest, highest] = range_of_counting(step);
    const bool stays =
        grows ? b.high() + inclusive - 1 + size <= highest : b.low() - inclusive + 1 - size >= lowest;
    if (!stays) return no_bound;
    const Wide distance = (grows ? b.high() - a.low() : a.high() - b.low()) + inclusive;
    return distance <= 0 ? 0 : (distance + size - 1) / size;
  }

  // Returns between which numbers a value may grow, or get smaller, without a wrap.
  static std::pair<Wide, Wide> range_of_counting(const ProgramStep& step) {
    const auto range = [](std::uint8_t width_bits, bool is_signed) {
      const Wide span = Wide{1} << width_bits;
      const Wide lowest = is_signed ? -(span / 2) : 0;
      return std::pair{lowest, lowest + span - 1};
    };
    const auto of_test = range(step.operand_width_bits, step.is_signed);
    if (step.width_bits == 0) return of_test;
    const auto of_value = range(step.width_bits, step.extends_sign);
    return {std::max(of_test.first, of_value.first), std::min(of_test.second, of_value.second)};
  }

  static Wide rounds_until_equal(const Affine& a, const Affine& b, Wide stride, const ProgramStep& step) {
    const Affine apart = stride > 0 ? add(b, a, true, 64, step.variable) : add(a, b, true, 64, step.variable);
    const Wide size = stride > 0 ? stride : -stride;
    const auto [lowest, highest] = range_of_counting(step);
    const bool may_wrap = apart.low() < 0 || b.low() < lowest || b.high() > highest;
    if (step.width_bits != 0 && may_wrap) return -1;
    const Affine left = normalise(apart, step.operand_width_bits, false, step.variable);
    if (left.unknown != UnknownReason::None) return -1;
    if (left.base % size != 0 || left.step() % size != 0) return -1;
    return left.high() / size;
  }

  bool count(const ProgramStep& step, StepIndex result) {
    Affine& counter = values_[result];
    counter = values_[step.c];
    Wide most = rounds(step);
    if (most < 0) return true;
    if (step.operation == Operation::Select && --most < 0) return false;
    if (counter.axis_count == 0) return true;  // a bound before said 0
    counter.unknown = UnknownReason::None;
    counter.axes[0].last = std::min(counter.axes[0].last, most);
    if (counter.axes[0].last == 0) counter.axis_count = 0;
    return true;
  }

  const LaunchArguments& launch_;
  std::span<Affine> values_;
  LoopLasts* lasts_;
};

// The same program, but conditions are kept as constraints.
class ExactEvaluator {
 public:
  ExactEvaluator(const LaunchArguments& launch, std::span<Affine> values, LoopLasts& lasts, ExactPlace& place)
      : evaluator_(launch, values, &lasts), lasts_(lasts), place_(place) {}

  void run(std::span<const ProgramStep> steps, std::span<const StepIndex> needed, StepIndex result) {
    for (const StepIndex index : needed)
      if (!run(steps[index], index)) return;
    place_.address = evaluator_.value(result);
    for (std::size_t i = 0; i < lasts_.count; ++i) forget_if_unused(lasts_.loops[i]);
    const bool all_bounded =
        std::all_of(lasts_.loops.begin(), lasts_.loops.begin() + static_cast<std::ptrdiff_t>(lasts_.count),
                    [](const auto& loop) { return loop.last == 0 || loop.is_bounded; });
    place_.is_exact = !is_asked_ && all_bounded && is_over_launch(place_.address);
    place_.is_whole = place_.is_exact && lasts_.has_all_rounds;
  }

 private:
  // False: there is no more to find.
  bool run(const ProgramStep& step, StepIndex result) {
    switch (step.kind) {
      case StepKind::Evaluate:
      case StepKind::Hull:
        return evaluator_.run(step, result);
      case StepKind::Require:
        return !step.is_needed || require(evaluator_.value(step.a));
      case StepKind::Restrict:
        evaluator_.value(result) = evaluator_.value(step.c);
        return !step.is_needed || is_settled_ || compare(step);
      case StepKind::Count:
        evaluator_.value(result) = evaluator_.value(step.c);
        return count(step);
    }
    return true;
  }

  static bool is_over_launch(const Affine& value) {
    if (value.unknown != UnknownReason::None) return false;
    return std::all_of(value.axes.begin(), value.axes.begin() + value.axis_count, [](const auto& axis) {
      const auto is_one_of = [&](SpecialRegister first, SpecialRegister last) {
        return axis.variable >= static_cast<std::uint32_t>(first) &&
               axis.variable <= static_cast<std::uint32_t>(last);
      };
      return (axis.variable >= first_loop_variable && axis.variable < first_step_variable) ||
             is_one_of(SpecialRegister::TidX, SpecialRegister::TidZ) ||
             is_one_of(SpecialRegister::CtaidX, SpecialRegister::CtaidZ);
    });
  }

  // A predicate that is not the same for all threads has to be a comparison: that follows.
  bool require(const Affine& predicate) {
    if (is_asked_) return false;
    is_asked_ = !predicate.is_constant();
    is_settled_ = !is_asked_;
    if (is_asked_ || predicate.base != 0) return true;
    place_.is_exact = true;
    place_.is_whole = lasts_.has_all_rounds;
    place_.happens = false;
    return false;
  }

  bool add_constraint(const Affine& larger, const Affine& smaller, Wide apart) {
    Affine difference = add(larger, smaller, true, 64, first_step_variable);
    difference.base -= apart;
    if (!is_over_launch(difference)) return false;
    if (difference.low() >= 0) return true;
    if (place_.constraint_count == ExactPlace::most_constraints) return false;
    place_.at_least_zero[place_.constraint_count++] = difference;
    return true;
  }

  bool compare(const ProgramStep& step) {
    is_asked_ = false;
    const Affine a = evaluator_.fitted(step.c, step);
    const Affine b = evaluator_.fitted(step.b, step);
    if (!is_over_launch(a) || !is_over_launch(b)) return false;
    switch (step.compare) {
      case Compare::Lt:
        return add_constraint(b, a, 1);
      case Compare::Le:
        return add_constraint(b, a, 0);
      case Compare::Gt:
        return add_constraint(a, b, 1);
      case Compare::Ge:
        return add_constraint(a, b, 0);
      case Compare::Eq:
        return add_constraint(a, b, 0) && add_constraint(b, a, 0);
      case Compare::Ne:
        return a.high() < b.low() || b.high() < a.low();
      default:
        return false;
    }
  }

  // The loop goes on after an iteration only where its test holds there. It holds in all iterations before,
  // since it gets harder. After the last iteration that counts nobody asks.
  bool count(const ProgramStep& step) {
    LoopLasts::Loop* const loop = lasts_.find(step.value);
    if (loop == nullptr || loop->last == 0) return true;
    const Affine a = evaluator_.fitted(step.a, step);
    const Affine b = evaluator_.fitted(step.b, step);
    if (!is_over_launch(a) || !is_over_launch(b)) return true;
    const std::uint32_t variable = first_loop_variable + static_cast<std::uint32_t>(step.value);
    bool a_grows = step.compare == Compare::Lt || step.compare == Compare::Le;
    if (step.compare == Compare::Ne)
      a_grows = stride_of(a, variable) > stride_of(b, variable);
    else if (!a_grows && step.compare != Compare::Gt && step.compare != Compare::Ge)
      return true;
    Affine room =
        a_grows ? add(b, a, true, 64, first_step_variable) : add(a, b, true, 64, first_step_variable);
    const Wide stride = stride_of(room, variable);
    if (stride >= 0) return true;
    if (step.operation != Operation::Select) room.base -= stride;  // asked in the iteration before
    const Wide apart = step.compare == Compare::Le || step.compare == Compare::Ge ? 0 : 1;
    const std::size_t before = place_.constraint_count;
    loop->is_bounded = add_constraint(room, Affine::constant(0), apart);
    if (place_.constraint_count > before) loop->constraint = before;
    return true;
  }

  // The first iteration will do where nothing else depends on a loop's counter.
  void forget_if_unused(LoopLasts::Loop& loop) {
    const std::uint32_t variable = first_loop_variable + static_cast<std::uint32_t>(loop.loop);
    if (has_axis(place_.address, variable)) return;
    for (std::size_t i = 0; i < place_.constraint_count; ++i)
      if (i != loop.constraint && has_axis(place_.at_least_zero[i], variable)) return;
    if (loop.constraint < place_.constraint_count)
      place_.at_least_zero[loop.constraint] = Affine::constant(0);
    loop.last = 0;
  }

  static bool has_axis(const Affine& value, std::uint32_t variable) {
    return std::any_of(value.axes.begin(), value.axes.begin() + value.axis_count,
                       [variable](const AffineAxis& axis) { return axis.variable == variable; });
  }

  static Wide stride_of(const Affine& value, std::uint32_t variable) {
    for (std::size_t i = 0; i < value.axis_count; ++i)
      if (value.axes[i].variable == variable) return value.axes[i].stride;
    return 0;
  }

  Evaluator evaluator_;
  LoopLasts& lasts_;
  ExactPlace& place_;
  bool is_asked_ = false;    ///< the last predicate is not the same for all, and its comparison has not come
  bool is_settled_ = false;  ///< the last predicate is the same for all
};

// Returns what the place of an access that starts at `result` depends on, in the same order.
std::vector<StepIndex> needed_steps(std::span<const ProgramStep> steps, const AccessPlace& place,
                                    StepIndex result) {
  std::vector<bool> is_needed(steps.size(), false);
  is_needed[result] = true;
  std::vector<StepIndex> needed;
  for (auto at = place.steps.rbegin(); at != place.steps.rend(); ++at) {
    const ProgramStep& step = steps[*at];
    const bool is_condition = step.kind == StepKind::Require || step.kind == StepKind::Restrict;
    if (!is_condition && !is_needed[*at]) continue;
    needed.push_back(*at);
    for (const StepIndex operand : {step.a, step.b, step.c}) is_needed[operand] = true;
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

// The greatest value of each of these counters. Where a loop has no bound, only its first iteration counts.
LoopLasts find_lasts(std::span<const ProgramStep> steps, std::span<const StepIndex> needed,
                     std::span<const std::uint32_t> around, const std::vector<bool>& counted_loops,
                     std::span<const Affine> values) {
  LoopLasts lasts;
  lasts.around = around;
  for (auto at = needed.begin(); at != needed.end(); ++at) {
    const ProgramStep& step = steps[*at];
    const bool is_counter = step.kind == StepKind::Evaluate && step.operation == Operation::LoopCounter;
    if (!is_counter || step.is_signed || !lasts.is_around(step.value)) continue;
    StepIndex narrowest = *at;
    for (auto next = at; next != needed.end(); ++next) {
      const StepKind kind = steps[*next].kind;
      const bool narrows = kind == StepKind::Restrict || kind == StepKind::Count;
      if (narrows && steps[*next].c == narrowest) narrowest = *next;
    }
    const Affine& counter = values[narrowest];
    const bool is_known = counted_loops[step.value] && counter.unknown == UnknownReason::None;
    const Wide last = is_known ? counter.high() : Wide{0};
    lasts.has_all_rounds = lasts.has_all_rounds && is_known;
    if (LoopLasts::Loop* const found = lasts.find(step.value))
      found->last = std::min(found->last, last);
    else if (lasts.count < lasts.loops.size())
      lasts.loops[lasts.count++] = {step.value, last, false};
    else
      lasts.has_all_rounds = false;
  }
  return lasts;
}

}  // namespace

void StepValues::begin(std::size_t step_count, std::size_t place_count, std::uint32_t budget_steps) {
  left = budget_steps;
  if (values.size() < step_count) values.resize(step_count);
  states.assign(step_count, State::NotRun);
  possible_steps.assign(place_count, not_asked);
}

bool evaluate(std::span<const ProgramStep> steps, std::span<const AccessPlace> places, std::size_t place,
              const LaunchArguments& launch, StepValues& values) {
  using State = StepValues::State;
  const std::vector<StepIndex>& own = places[place].steps;
  std::size_t& possible = values.possible_steps[place];
  if (possible != StepValues::not_asked) return possible == own.size();
  possible = 0;
  if (place > 0 && values.possible_steps[place - 1] != StepValues::not_asked)
    possible = std::min(places[place].common_step_count, values.possible_steps[place - 1]);
  Evaluator evaluator(launch, values.values);
  for (; possible < own.size(); ++possible) {
    const StepIndex index = own[possible];
    State& state = values.states[index];
    if (state == State::NotRun) values.take(1);
    if (values.is_spent()) return true;
    if (state == State::NotRun) state = evaluator.run(steps[index], index) ? State::Made : State::Impossible;
    if (state == State::Impossible) return false;
  }
  return true;
}

ExactPlace evaluate_exactly(std::span<const ProgramStep> steps, const AccessPlace& place, StepIndex result,
                            const std::vector<bool>& counted_loops, const LaunchArguments& launch,
                            const StepValues& values, StepValues& exact) {
  ExactPlace found;
  const std::vector<StepIndex> needed = needed_steps(steps, place, result);
  LoopLasts lasts = find_lasts(steps, needed, place.loops, counted_loops, values.values);
  exact.begin(steps.size(), 0);
  ExactEvaluator(launch, exact.values, lasts, found).run(steps, needed, result);
  return found;
}

}  // namespace firebreak::access
