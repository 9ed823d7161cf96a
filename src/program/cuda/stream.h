// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "program/cuda/event.h"
#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// A queue of work on the GPU. Made in the current context. The driver lets threads share one.
class Stream {
 public:
  /// `flags`: CUstream_flags; by default it does not wait for the legacy default stream. A lower `priority`
  /// number goes first; 0 is the normal one.
  static Result<Stream> create(const Driver& driver, unsigned int flags = CU_STREAM_NON_BLOCKING,
                               int priority = 0);

  CUstream handle() const { return stream_.get(); }
  const Driver& driver() const { return stream_.driver(); }

  /// Waits for all work in the stream; a fault of it, or of anybody who shares its fate, is the error.
  Status synchronize() const;
  Result<bool> idle() const;
  /// Later work waits for the event's mark, which may be in another stream.
  Status wait_for(const Event& event) const;

  /// Later work waits until the memory compares with `value` as `how` says (CUstreamWaitValue_flags).
  Status wait_value(CUdeviceptr address, std::uint32_t value,
                    unsigned int how = CU_STREAM_WAIT_VALUE_GEQ) const;
  Status wait_value64(CUdeviceptr address, std::uint64_t value,
                      unsigned int how = CU_STREAM_WAIT_VALUE_GEQ) const;
  /// Writes after all that came before; `flags`: CUstreamWriteValue_flags.
  Status write_value(CUdeviceptr address, std::uint32_t value, unsigned int flags = 0) const;
  Status write_value64(CUdeviceptr address, std::uint64_t value, unsigned int flags = 0) const;

 private:
  struct Destroy {
    void operator()(const Driver& driver, CUstream stream) const { driver->cuStreamDestroy(stream); }
  };
  Stream(const Driver& driver, CUstream stream) : stream_(driver, stream) {}

  Owned<CUstream, Destroy> stream_;
};

}  // namespace firebreak::cuda
