// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "cuda/address_reservation.h"
#include "cuda/context.h"
#include "cuda/mapping.h"
#include "cuda/physical_allocation.h"

namespace firebreak::inject {

/// One granule of GPU memory mapped at an address of its own, to take rights away from or to unmap.
struct MappedTarget {
  cuda::AddressReservation reservation;
  cuda::PhysicalAllocation memory;
  std::optional<cuda::Mapping> mapping;  ///< goes first

  CUdeviceptr address() const { return reservation.address(); }
};

/// In the current context, which `context` is.
Result<std::shared_ptr<MappedTarget>> map_target(const cuda::ContextView& context, cuda::Access access);

}  // namespace firebreak::inject
