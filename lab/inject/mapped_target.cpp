// SPDX-License-Identifier: Apache-2.0
#include "inject/mapped_target.h"

#include <utility>

#include "ground/base/units.h"

namespace firebreak::inject {

Result<std::shared_ptr<MappedTarget>> map_target(const cuda::ContextView& context,
                                                 std::optional<cuda::Access> access,
                                                 std::size_t beyond_bytes) {
  const auto device = context.device();
  if (!device) return propagate(device);
  const auto size_bytes = cuda::PhysicalAllocation::granularity_bytes(*device);
  if (!size_bytes) return propagate(size_bytes);
  // One granule more than asked for: the page of the last byte asked for is within.
  const std::size_t beyond = beyond_bytes == 0 ? 0 : round_up(beyond_bytes, *size_bytes) + *size_bytes;
  auto reservation = cuda::AddressReservation::reserve(context.driver(), *size_bytes + beyond);
  if (!reservation) return propagate(reservation);
  auto memory = cuda::PhysicalAllocation::create(*device, *size_bytes);
  if (!memory) return propagate(memory);
  auto mapping = cuda::Mapping::map(*device, reservation->address(), *memory, access);
  if (!mapping) return propagate(mapping);
  return std::make_shared<MappedTarget>(
      MappedTarget{std::move(*reservation), std::move(*memory), std::move(*mapping)});
}

}  // namespace firebreak::inject
