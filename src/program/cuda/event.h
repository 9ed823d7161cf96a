// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// A point in a stream's work. Made in the current context.
class Event {
 public:
  /// `flags`: CUevent_flags. Without CU_EVENT_DISABLE_TIMING two events give a duration.
  static Result<Event> create(const Driver& driver, unsigned int flags = CU_EVENT_DISABLE_TIMING);

  CUevent handle() const { return event_.get(); }
  /// Marks the end of what is in `stream` by now; null is the legacy default stream.
  Status record(CUstream stream) const;
  /// This tells whether everything before the mark is done.
  Result<bool> done() const;
  Status synchronize() const;
  /// The time runs from `earlier` to this one, both done and made for timing.
  Result<float> elapsed_ms_since(const Event& earlier) const;

 private:
  struct Destroy {
    void operator()(const Driver& driver, CUevent event) const { driver->cuEventDestroy(event); }
  };
  Event(const Driver& driver, CUevent event) : event_(driver, event) {}

  Owned<CUevent, Destroy> event_;
};

}  // namespace firebreak::cuda
