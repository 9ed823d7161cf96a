// SPDX-License-Identifier: Apache-2.0
/// Flat code that finds, for one launch, where accesses may go. Internal to src/kernels/access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/access/register_flow.h"
#include "kernels/access/thread_values.h"

namespace firebreak::access {

/// The act of a step on the values of earlier steps. Each value is made once and never changed.
enum class StepKind : std::uint8_t {
  Evaluate,  ///< operation of a, b, c
  Hull,      ///< either a or b
  Require,   ///< no value: the predicate a may be true, otherwise the access does not happen
  Restrict,  ///< the part of c that compares with b; if there is none, the access does not happen
  /// c, the counter of loop `value`, bounded: the loop goes on while a and b compare so.
  /// operation Select: and the access comes after that test.
  Count,
};

/// An index into KernelSummary::steps, and what that step makes.
using StepIndex = std::uint16_t;

struct ProgramStep {
  StepKind kind = StepKind::Evaluate;
  Operation operation = Operation::Constant;
  std::uint8_t width_bits = 0;
  std::uint8_t operand_width_bits = 0;
  bool is_signed = false;
  ptx::Compare compare = ptx::Compare::None;
  UnknownReason reason = UnknownReason::None;
  bool is_needed = true;  ///< Require, Restrict: AccessCondition::is_needed of the condition that it is for
  /// Count: what has the counter in it was widened from width_bits, so. 0: it was not.
  bool extends_sign = false;
  StepIndex a = 0;
  StepIndex b = 0;
  StepIndex c = 0;
  std::uint64_t value = 0;
  /// Variable of an axis of its own; the next two are for axes of its operands, where these do not fit.
  std::uint32_t variable = 0;

  bool operator==(const ProgramStep&) const = default;
};

/// A predicate that holds wherever the access happens, and the block at whose end it was asked.
struct AccessCondition {
  ExpressionIndex predicate = no_expression;
  std::uint32_t block = ptx::no_index;  ///< block; no_index: the instruction's own guard
  /// False: it says nothing of whether the access happens, only of what holds then. A loop ends some time.
  bool is_needed = true;
};

/// Accesses under the same conditions: what has to be made to know whether they happen and where they start.
struct AccessPlace {
  std::vector<StepIndex> steps;       ///< steps in this order: first those of the conditions
  std::size_t common_step_count = 0;  ///< number of steps at the beginning that are those of the place before
  std::vector<std::uint32_t> loops;   ///< around the accesses
};

/// The base from which an address starts.
enum class BaseKind : std::uint8_t {
  Unknown,
  Parameter,  ///< a pointer in the parameter block
  Variable,   ///< a variable of the module
};
struct AddressBase {
  BaseKind kind = BaseKind::Unknown;
  std::uint64_t value = 0;         ///< byte offset in the parameter block, or index of the variable
  bool has_second = false;         ///< two 64-bit parameters are added: one of them is the pointer
  std::uint64_t second_value = 0;  ///< the other's offset
  ValueOrigins others;  ///< origins that the address is made of besides: if that points somewhere, it may go
                        ///< there
};

/// Bytes, counted from where a program's accesses start.
struct OffsetRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  ///< end after the last one; as `begin`: there is no such access
  bool is_empty() const { return begin == end; }
};

/// The start of accesses that are a constant apart.
struct AddressProgram {
  std::uint32_t place = 0;  ///< index into KernelSummary::places
  StepIndex result = 0;
  bool is_complete = false;  ///< false: it would need too many steps
  bool has_atomics = false;
  AddressBase base;
  OffsetRange reads;  ///< bytes that accesses cover that start there
  OffsetRange writes;
};

/// Largest number of steps of a kernel.
inline constexpr std::size_t most_steps = 1U << 16;

/// Axis variables: special registers first, then loops, then steps.
inline constexpr std::uint32_t first_loop_variable = 128;
inline constexpr std::uint32_t first_step_variable = 1U << 20;

/// The steps of a kernel, each only once.
class StepPool {
 public:
  /// Adds that step, made now if it is not there yet. `variable` is not asked. most_steps: there is no more
  /// room.
  std::size_t add(ProgramStep step);
  std::vector<ProgramStep> take() { return std::move(steps_); }

 private:
  struct Hash {
    std::size_t operator()(const ProgramStep& step) const;
  };
  std::vector<ProgramStep> steps_;
  std::unordered_map<ProgramStep, StepIndex, Hash> index_;
};

struct CompiledPlace {
  AccessPlace place;
  std::vector<AddressProgram> programs;  ///< programs by address
};

/// Compiles the place of accesses in `block`, or in others of the same innermost loop.
CompiledPlace compile_place(const ThreadValues& values, std::uint32_t block,
                            const std::vector<AccessCondition>& conditions,
                            const std::vector<ExpressionIndex>& addresses, StepPool& pool, Budget& budget);

}  // namespace firebreak::access
