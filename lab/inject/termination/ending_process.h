// SPDX-License-Identifier: Apache-2.0
/// A process that ends while its kernel runs: the shape of the kernel, and the way to end.
#pragma once

#include <chrono>

#include "inject/kind.h"

namespace firebreak::inject {

struct WorkShape {
  /// The kernel ends by itself after this, whatever becomes of the process.
  std::chrono::milliseconds limit{2000};
  bool fills_gpu = false;       ///< true: as many threads as the GPU holds at a time; false: one
  bool waits_for_host = false;  ///< reads a word of host memory over and over, to end when it is set
};

inline constexpr WorkShape one_block{};
/// Long enough to be running still when the process is told to end, and over before all of it is gone.
inline constexpr WorkShape short_kernel{.limit = std::chrono::milliseconds(50)};
inline constexpr WorkShape waiting_kernel{.limit = std::chrono::milliseconds(5000), .waits_for_host = true};
inline constexpr WorkShape full_gpu{.fills_gpu = true};

/// Says that it runs, then works until its time is over or the host says so. A bound on the turns ends it
/// even where the timer stands still.
inline constexpr std::string_view working_kernel_ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry work_for_a_while(.param .u64 running, .param .u64 stop, .param .u64 limit_ns)
{
  .reg .u64 %running, %stop, %limit, %begin, %now, %elapsed;
  .reg .u32 %turns, %word;
  .reg .pred %again, %asks;
  ld.param.u64 %running, [running];
  ld.param.u64 %stop, [stop];
  ld.param.u64 %limit, [limit_ns];
  mov.u64 %begin, %globaltimer;
  mov.u32 %turns, 0;
  mov.u32 %word, 0;
  setp.ne.u64 %asks, %stop, 0;
  st.volatile.u32 [%running], 1;
turn:
  @%asks ld.volatile.u32 %word, [%stop];
  mov.u64 %now, %globaltimer;
  sub.u64 %elapsed, %now, %begin;
  add.u32 %turns, %turns, 1;
  setp.lt.u64 %again, %elapsed, %limit;
  setp.lt.and.u32 %again, %turns, 268435456, %again;
  setp.eq.and.u32 %again, %word, 0, %again;
  @%again bra turn;
  ret;
}
)";

/// InvalidArgument without `options.end_process`.
Prepared prepare_ending(const cuda::ContextView& context, const Options& options, const WorkShape& shape,
                        Ending ending);

/// The same as a Kind's `prepare`.
template <const WorkShape& shape, Ending ending>
Prepared prepare_ending(const cuda::Driver&, const cuda::ContextView& context, const Options& options) {
  return prepare_ending(context, options, shape, ending);
}

}  // namespace firebreak::inject
