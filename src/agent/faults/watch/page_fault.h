// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "agent/faults/fault/fault.h"

namespace firebreak::watch {

/// An access that the GPU's memory manager had to look at. Most are serviced and no fault.
struct PageFault {
  fault::Fault fault;  ///< a fault that is not conclusive; its address is there
  std::string access;  ///< "load", "store", "atomic" or "prefetch"
};

using PageFaultCallback = std::function<void(const PageFault&)>;

}  // namespace firebreak::watch
