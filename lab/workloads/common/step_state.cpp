// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/step_state.h"

#include <fmt/format.h>

#include <cstring>

namespace firebreak::workloads {

Status StepState::restore(std::span<const std::byte> committed, std::uint64_t next_step) {
  StepState state;
  if (committed.size() != sizeof state) {
    return fail(ErrorCode::Protocol,
                fmt::format("committed state has {} bytes, not {}", committed.size(), sizeof state));
  }
  std::memcpy(&state, committed.data(), sizeof state);
  if (state.fingerprint != fingerprint) {
    return fail(ErrorCode::Protocol,
                "committed state belongs to other options: size, seed or number of steps",
                "start active and standby with the same options");
  }
  if (state.step != next_step - 1) {
    return fail(ErrorCode::Protocol,
                fmt::format("committed state is of step {}, not {}", state.step, next_step - 1));
  }
  *this = state;
  return {};
}

}  // namespace firebreak::workloads
