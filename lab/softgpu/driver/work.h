// SPDX-License-Identifier: Apache-2.0
/// One entry of a stream's queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "softgpu/driver/completion.h"
#include "softgpu/machine/domain.h"
#include "softgpu/machine/fault_table.h"

namespace firebreak::softgpu::driver {

struct NodeContent;

struct WorkDone {};
/// The GPU stopped it half way: nothing after it runs, and it never completes.
struct WorkStopped {};
struct WorkFault {
  FaultCause cause = FaultCause::UnmappedAccess;
  GpuAccess access = GpuAccess::None;
  std::uint64_t address = 0;
  std::optional<SmException> exception = std::nullopt;  ///< its warp is halted, and can be dumped
};
using WorkOutcome = std::variant<WorkDone, WorkStopped, WorkFault>;

struct Work {
  std::function<WorkOutcome()> run;  ///< empty: only an end of dependencies
  bool on_gpu = true;                ///< false: host functions and markers, which nobody's death disturbs
  /// The work stores to memory, or waits, which nobody does for a process that has died: no word may vouch
  /// for it.
  bool is_lost_with_process = false;
  std::vector<CompletionPointer> dependencies;
  CompletionPointer completion = std::make_shared<Completion>();
  /// Content that a graph keeps of it; null: it can only be done again.
  std::shared_ptr<const NodeContent> node = nullptr;

  /// The same to be done once more: after nothing, and with an end of its own.
  Work again() const {
    Work work = *this;
    work.dependencies.clear();
    work.completion = std::make_shared<Completion>();
    return work;
  }
};

}  // namespace firebreak::softgpu::driver
