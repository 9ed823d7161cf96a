// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "program/cuda/address_reservation.h"
#include "program/cuda/context.h"
#include "program/cuda/mapping.h"
#include "program/cuda/physical_allocation.h"

namespace firebreak::inject {

/// One granule of GPU memory mapped at an address of its own, to take rights away from or to unmap.
struct MappedTarget {
  cuda::AddressReservation reservation;
  cuda::PhysicalAllocation memory;
  std::optional<cuda::Mapping> mapping;  ///< goes first

  CUdeviceptr address() const { return reservation.address(); }
};

/// Maps memory in the current context, which `context` is. Empty `access`: it is mapped, and nobody has
/// rights to it. At least `beyond_bytes` behind its address, and the page there, are nobody's: reserved with
/// nothing mapped.
Result<std::shared_ptr<MappedTarget>> map_target(const cuda::ContextView& context,
                                                 std::optional<cuda::Access> access,
                                                 std::size_t beyond_bytes = 0);

}  // namespace firebreak::inject
