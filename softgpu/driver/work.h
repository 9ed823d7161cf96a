// SPDX-License-Identifier: Apache-2.0
/// One entry of a stream's queue.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "softgpu/driver/completion.h"
#include "softgpu/machine/fault_table.h"

namespace firebreak::softgpu::driver {

struct WorkDone {};
/// The GPU stopped it half way: nothing after it runs, and it never completes.
struct WorkStopped {};
struct WorkFault {
  FaultCause cause = FaultCause::UnmappedAccess;
  GpuAccess access = GpuAccess::None;
  std::uint64_t address = 0;
};
using WorkOutcome = std::variant<WorkDone, WorkStopped, WorkFault>;

struct Work {
  std::function<WorkOutcome()> run;  ///< empty: only an end of dependencies
  bool on_gpu = true;                ///< false: host functions and markers, which nobody's death disturbs
  std::vector<CompletionPointer> dependencies;
  CompletionPointer completion = std::make_shared<Completion>();
};

}  // namespace firebreak::softgpu::driver
