// SPDX-License-Identifier: Apache-2.0
/// PTX that says which global memory its kernel touches, and leaves off where it is told to: so that a launch
/// on a GPU can be traced and torn.
#pragma once

#include <cstdint>
#include <string>

#include "ground/base/result.h"
#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::idempotency {

/// What instrumented code reads and writes in GPU memory. The variable `trace_variable` of its module holds
/// the address of one; 0: it is not traced. Behind it: `range_count` pairs of addresses, begin and end.
struct TraceHeader {
  std::uint64_t next = 0;        ///< accesses so far
  std::uint64_t most = 0;        ///< records that there is room for
  std::uint64_t stop_after = 0;  ///< accesses; each thread ends at its next one
  std::uint64_t records = 0;     ///< address of the first TraceRecord
  std::uint64_t range_count = 0;
  std::uint64_t strays = 0;  ///< accesses outside of all ranges: these threads end before them
};
struct TraceRecord {
  std::uint64_t address = 0;
  std::uint64_t thread = 0;  ///< as softgpu::ObservedAccess counts
  std::uint32_t line = 0;    ///< in the PTX text as it was given
  std::uint32_t what = 0;    ///< what_of the access
};
/// As the software GPU tells it.
softgpu::ObservedAccess observed(const TraceRecord& record);
/// A generic address may be one of shared or local memory, which is not told.
constexpr std::uint32_t what_of(ptx::EffectKind kind, bool is_generic, std::uint32_t size_bytes) {
  return static_cast<std::uint32_t>(kind) | (is_generic ? 0x80U : 0U) | size_bytes << 8U;
}
static_assert(sizeof(TraceHeader) == 48 && sizeof(TraceRecord) == 24);
inline constexpr const char* trace_variable = "firebreak_trace";

/// The module of `text` with that kernel alone, for blocks of so many threads. An access is told just before
/// it happens. Unsupported: the kernel, or a function of the module, does something that cannot be traced so.
Result<std::string> instrument(const std::string& text, const ptx::Module& module,
                               const ptx::Function& kernel, std::uint32_t threads);

}  // namespace firebreak::idempotency
