// SPDX-License-Identifier: Apache-2.0
/// The summary of what a kernel reads and writes in global memory, found once from its PTX. Immutable; shared
/// by threads. The idea that idempotency belongs to a launch and not to a kernel is PICKER's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/access/program.h"
#include "kernels/ptx/ir.h"

namespace firebreak::access {

/// One access of one instruction, of all threads.
struct AccessGroup {
  ptx::EffectKind kind = ptx::EffectKind::None;
  std::uint32_t line = 0;         ///< line of the instruction, in the PTX text
  std::uint32_t instruction = 0;  ///< index into ptx::Function::instructions
  std::uint32_t operand = 0;
  std::uint32_t width_bytes = 0;
  bool is_certain = false;    ///< each thread does it for which its conditions hold, if the launch ends
  bool is_store = false;      ///< the access writes all bytes of its width, and does nothing else
  bool is_read_back = false;  ///< the thread that wrote it reads it back: those reads are left out
  bool by_order = false;      ///< the order of the block's threads may decide whether it happens, or where
  bool by_own = false;        ///< the same, if other threads write what a thread reads back
  AddressBase base;
  ExpressionIndex address = no_expression;
  std::vector<AccessCondition> conditions;
  std::uint32_t program = 0;       ///< index into KernelSummary::programs: where it starts, and whether it
                                   ///< happens
  std::uint64_t offset_bytes = 0;  ///< offset to be added to what the program finds, modulo 2^64
};

/// A part of the parameter block.
struct ParameterBytes {
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

/// A variable in constant memory.
struct ConstantVariable {
  std::uint32_t index = 0;  ///< index into KernelSummary::variables
  std::uint64_t size_bytes = 0;
};

struct KernelSummary {
  std::string kernel;
  std::string refusal;  ///< why nothing is known of any launch; empty: something is
  std::string hazard;   ///< hazard: what may raise an exception, or waits for others
                        ///< (kernels/access/hazard.h)
  std::vector<AccessGroup> groups;
  std::vector<ProgramStep> steps;        ///< steps, of which each needs earlier ones only
  std::vector<AccessPlace> places;       ///< shared by groups under the same conditions
  std::vector<AddressProgram> programs;  ///< shared by groups a constant apart, under the same conditions
  std::vector<ptx::Parameter> parameters;
  std::vector<std::string> variables;  ///< names of the module's
  std::uint64_t parameter_bytes = 0;
  /// Names by the kernel's instructions: how each is written; only of those in `groups`.
  std::vector<std::string> instruction_names;
  std::vector<ParameterBytes> relevant_parameters;  ///< parameters that decisions depend on
  /// Words of the parameter block that one parameter fills: if there is a pointer, it begins there.
  std::vector<bool> whole_words;
  bool reads_own_writes = false;    ///< a read was left out for that
  bool has_order_in_block = false;  ///< atomics in shared memory: who comes first may matter
  bool reads_shared = false;     ///< true: it reads what the block's threads write there, in an order that is
                                 ///< not followed
  bool reads_constants = false;  ///< true: it reads in constant memory
  std::uint32_t constant_line = 0;          ///< line of the last such read
  std::vector<ConstantVariable> constants;  ///< constants that it may read there
  ValueOrigins own_memory;  ///< parts of addresses in shared and local memory: if one of these is a pointer,
                            ///< they are not
  bool uses_variables = false;                 ///< decisions depend on where variables of the module lie
  std::vector<bool> counted_loops;             ///< flags by loop: one test an iteration is the only way out
  std::uint64_t analysis_steps = 0;            ///< number of steps that it took, of Budget::most_steps
  std::shared_ptr<const ThreadValues> values;  ///< values for words; null: they are shorter
};

/// The bytes of the parameter block, from the first to behind the last, in which a pointer lies of which a
/// part is in that word.
std::pair<std::size_t, std::size_t> bytes_of_pointers(const KernelSummary& summary, std::size_t word);

/// Summarises an entry function with a body. Never fails: what is not understood is a refusal, or an address
/// of which nothing is known. A read of what the same thread has certainly written before is left out.
/// Shared, local and parameter memory are left out: no other block sees them, or no kernel writes them.
/// Arithmetic on a pointer is taken to stay inside the memory that it points to, but only where the offset is
/// not known, and is made of nothing that points elsewhere. Its cost is bounded by Budget: beyond it the
/// kernel is refused.
KernelSummary summarise(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace firebreak::access
