// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "workloads/common/options.h"
#include "workloads/common/workload.h"

namespace firebreak::workloads {

struct Program {
  const char* name = "";
  const char* description = "";
  std::string_view ptx;
  std::function<Result<std::unique_ptr<Workload>>(const Gpu&, const Options&)> create;
};

/// Exit statuses besides 0 (done, or a standby that nobody needed) and those of wrong options.
enum class Failure {
  Other = 1,
  Gpu = 3,     ///< the driver answered with an error, as after a fault
  Fenced = 4,  ///< a different process is the active one of this tenant
};

/// The whole of a sample tenant's main(): alone without FIREBREAK_SOCKET or with --standalone, else as an
/// active or as a standby. Returns the exit status; a failure is one line on standard error.
int run_program(const Program& program, int argument_count, const char* const* arguments);

/// Gives what main() returns. A program that fails does not come back: it has not left its session, so it
/// ends as it is, at once, and the agent finds it dead.
int run_program_or_end(const Program& program, int argument_count, const char* const* arguments);

}  // namespace firebreak::workloads
