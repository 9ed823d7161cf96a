// SPDX-License-Identifier: Apache-2.0
#include "inject/report.h"

#include "ground/base/clock.h"

namespace firebreak::inject {

std::int64_t now_ns() { return to_ns(SystemClock().now()); }

RaisedFault wait_and_report(const cuda::Stream& stream, std::int64_t launched_at_ns, CUresult queued) {
  const cuda::Driver& driver = stream.driver();
  const CUresult answered = queued == CUDA_SUCCESS ? driver->cuStreamSynchronize(stream.handle()) : queued;
  return RaisedFault{launched_at_ns, now_ns(), answered, driver.error_name(answered)};
}

}  // namespace firebreak::inject
