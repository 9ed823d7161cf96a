// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <optional>
#include <string_view>

#include "workloads/common/workload.h"

namespace firebreak::workloads {

/// The full context of a standby that was promoted in a small one: made, loaded and warmed up on a thread of
/// its own, while steps go on. Its destructor waits for that thread.
class FullContext {
 public:
  /// Both arguments outlive this.
  void begin(std::string_view ptx, const Workload& workload);
  /// Gives the context once it is there, or has failed; nothing before, and nothing where none was begun.
  /// Never waits.
  std::optional<Result<Gpu>> take();

 private:
  std::future<Result<Gpu>> coming_;
};

}  // namespace firebreak::workloads
