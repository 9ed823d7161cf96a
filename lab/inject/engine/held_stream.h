// SPDX-License-Identifier: Apache-2.0
/// A stream that waits until the host lets it go: for faults whose target is taken away while work waits for
/// it.
#pragma once

#include <utility>

#include "program/cuda/pinned_buffer.h"
#include "program/cuda/stream.h"

namespace firebreak::inject {

/// Use from one thread.
class HeldStream {
 public:
  /// Creates it in the current context; it does not wait yet.
  static Result<HeldStream> create(const cuda::Driver& driver);

  const cuda::Stream& stream() const { return stream_; }
  /// Makes everything that is queued from now on wait for release().
  CUresult hold() const;
  void release() const;

 private:
  HeldStream(cuda::PinnedBuffer flag, cuda::Stream stream)
      : flag_(std::move(flag)), stream_(std::move(stream)) {}

  cuda::PinnedBuffer flag_;
  cuda::Stream stream_;
};

}  // namespace firebreak::inject
