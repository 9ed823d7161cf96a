// SPDX-License-Identifier: Apache-2.0
/// The streams of the process that are being captured, and what that forbids: as CUDA's manual has it at
/// cuThreadExchangeStreamCaptureMode.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/stream.h"

namespace firebreak::softgpu::driver {

/// The calling thread's own mode.
CUstreamCaptureMode& capture_mode_of_thread();

/// Thread safe.
class Captures {
 public:
  /// Begins a capture into a new graph, or into `into`, where what is captured first waits for `after`.
  /// False: the stream is captured already.
  bool begin(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode,
             std::shared_ptr<Graph> into = nullptr, const GraphNodes& after = {});
  struct End {
    CUresult result = CUDA_SUCCESS;
    std::shared_ptr<Graph> graph;
  };
  /// Ends a capture by the stream that it began in. Everything in it has to come before what that stream
  /// waits for.
  End end(const std::shared_ptr<Stream>& stream);
  /// A stream waits for an event that was recorded in a capture: it takes part from now on.
  CUresult join(const std::shared_ptr<Stream>& stream, const CapturePlace& place);
  /// A stream ends: what is captured with it is void.
  void forget(const Stream& stream);

  /// Serves calls that no capture records and that change what a graph may rely on, such as cuMemAlloc and
  /// cuMemFree. STREAM_CAPTURE_UNSUPPORTED: forbidden, and the captures in whose way it came are void.
  CUresult allow_unsafe_call();
  /// The same for calls that ask after, or wait for, all streams of a context, or one stream.
  CUresult allow_waiting_for(const Context& context);
  CUresult allow_waiting_for(const Stream& stream);

 private:
  struct Capture {
    std::shared_ptr<CaptureUnderWay> under_way;
    std::vector<std::shared_ptr<Stream>> streams;  ///< the first one is its origin
  };
  template <class Forbids>
  CUresult refuse_where(const Forbids& forbids);
  std::vector<Capture>::iterator find(const CaptureUnderWay* under_way);

  std::mutex mutex_;  ///< guards what follows; before that of a stream
  std::vector<Capture> captures_;
  std::uint64_t next_id_ = 1;
};

}  // namespace firebreak::softgpu::driver
