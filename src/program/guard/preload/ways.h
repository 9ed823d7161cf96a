// SPDX-License-Identifier: Apache-2.0
/// The guard's way with each function of the driver's, as data.
#pragma once

#include <span>
#include <string_view>

#include "shared/abi/cuda_api.h"

namespace firebreak::guard {

struct Way {
  enum class Kind {
    none,     ///< the driver's: it is none of what the guard asks about
    left,     ///< the driver's, for a reason
    counted,  ///< asks the driver, and counts it as work
    own,      ///< the guard's
  };
  Kind kind = Kind::none;
  std::string_view reason;

  bool is_hooked() const { return kind == Kind::counted || kind == Kind::own; }
};

/// One for each of abi::cuda_functions(), in their order.
std::span<const Way> ways();
const Way& way_of(const abi::CudaFunction& function);

/// True when the guard has to know of it: it gives the GPU work, makes or ends a context, or makes, ends,
/// maps or gives away memory. A function for which it does not stand in has a reason then.
bool concerns_guard(const abi::CudaFunction& function);

}  // namespace firebreak::guard
