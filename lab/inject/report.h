// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/kind.h"
#include "program/cuda/stream.h"

namespace firebreak::inject {

/// CLOCK_MONOTONIC.
std::int64_t now_ns();

/// The report of work that was let go at `launched_at_ns` with `queued` as the answer: if the driver took it,
/// waits for the stream.
RaisedFault wait_and_report(const cuda::Stream& stream, std::int64_t launched_at_ns, CUresult queued);

}  // namespace firebreak::inject
