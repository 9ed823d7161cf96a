// SPDX-License-Identifier: Apache-2.0
/// The messages to and from detectors about processes. Every detector lives on one EventLoop's thread: it is
/// made, started, called back and destroyed there. Its callbacks run there too, as soon as the signal is in
/// hand; they must not destroy the detector.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "agent/faults/fault/fault.h"
#include "agent/faults/fault/source_traits.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

/// The process that a detector watches, and what its faults are to say about it.
struct Target {
  pid_t pid = 0;
  std::optional<std::uint32_t> gpu = {};  ///< GPU as fault::Gpu::number; empty: its domain says which
  std::string domain = {};                ///< empty: it is not known to be in one
  std::optional<std::string> tenant = {};
  /// While `domain` is empty: where it may be. Nothing follows for others who are there.
  std::string said = {};
  bool is_told = false;  ///< `said` is where it was told to run: what the driver says of it happened there

  std::string domain_by(fault::FaultSource source) const {
    return domain.empty() && is_told && fault::is_by_driver(source) ? said : domain;
  }
};

/// Says in `fault` whose it is.
inline void set_subject(fault::Fault& fault, const Target& target) {
  fault.pid = target.pid;
  fault.gpu.number = target.gpu;
  fault.domain = target.domain_by(fault.source);
  fault.tenant = target.tenant;
}

enum class Parentage {
  OurChild,  ///< the detector reaps it and says how it ended; nobody else may reap it
  Stranger,
};

/// How a watched process ended.
struct ProcessExit {
  pid_t pid = 0;
  std::optional<os::ExitStatus> status;  ///< empty: not known; of a stranger it often is
  bool expected = false;                 ///< Watcher::expect_exit() was called before
  Monotonic when{};
};

using FaultCallback = std::function<void(const fault::Fault&)>;

/// Words of a source that nobody has read, or will: what they told of is not known.
struct Gap {
  fault::FaultSource source = fault::FaultSource::Xid;
  std::optional<pid_t> pid;  ///< process whose words they were; empty: the whole machine's
  std::string domain = {};   ///< domain of that process
  std::string text = {};
  bool danger = true;                        ///< the lost words may have told of a fault
  std::optional<Error> silent_because = {};  ///< reason why nothing is heard of that source from now on
};

using GapCallback = std::function<void(const Gap&)>;

/// A detector that was started and cannot go on: NotFound when its target is gone, else what went wrong.
using EndCallback = std::function<void(const Error&)>;

}  // namespace firebreak::watch
