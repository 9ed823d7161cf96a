// SPDX-License-Identifier: Apache-2.0
/// Flat code that finds, for one launch, where one access may go. Internal to src/access.
#pragma once

#include <cstdint>
#include <vector>

#include "access/thread_values.h"

namespace firebreak::access {

enum class StepKind : std::uint8_t {
  Evaluate,  ///< slot `to` = operation of the slots a, b, c
  Hull,      ///< slot `to` = any of the slots a and b
  Require,   ///< the predicate in slot a may be true, else the access does not happen
  Restrict,  ///< slot `to` is compared with slot b, and that is true; none left: the access does not happen
  /// Slot `to`, the counter of loop `value`, is bounded: the loop goes on while slots a and b compare so.
  /// operation Select: and the access comes after that test.
  Count,
};

struct ProgramStep {
  StepKind kind = StepKind::Evaluate;
  Operation operation = Operation::Constant;
  std::uint8_t width_bits = 0;
  std::uint8_t operand_width_bits = 0;
  bool is_signed = false;
  ptx::Compare compare = ptx::Compare::None;
  UnknownReason reason = UnknownReason::None;
  bool is_needed = true;  ///< AccessCondition::is_needed of the condition that it is for
  std::uint16_t to = 0;
  std::uint16_t a = 0;
  std::uint16_t b = 0;
  std::uint16_t c = 0;
  std::uint64_t value = 0;
  /// For an axis of its own; the next two are for axes of its operands, where these do not fit.
  std::uint32_t variable = 0;
};

/// A predicate that holds wherever the access happens, and the block at whose end it was asked.
struct AccessCondition {
  ExpressionIndex predicate = no_expression;
  std::uint32_t block = ptx::no_index;  ///< no_index: the instruction's own guard
  /// False: it says nothing of whether the access happens, only of what holds then. A loop ends some time.
  bool is_needed = true;
};

struct AddressProgram {
  std::vector<ProgramStep> steps;
  std::uint16_t slot_count = 0;
  std::uint16_t result = 0;
  bool is_complete = false;  ///< false: it would need too many slots
};

/// Slots of any program.
inline constexpr std::uint16_t most_slots = 512;

/// Axis variables: special registers first, then loops, then steps of a program.
inline constexpr std::uint32_t first_loop_variable = 128;
inline constexpr std::uint32_t first_step_variable = 1U << 20;

AddressProgram compile_address(const ThreadValues& values, const MemoryAccess& access,
                               const std::vector<AccessCondition>& conditions);

}  // namespace firebreak::access
