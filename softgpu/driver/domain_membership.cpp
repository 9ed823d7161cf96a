// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/domain_membership.h"

#include "os/self.h"

namespace firebreak::softgpu::driver {

Answer<DomainMembership> join_domain() {
  auto domain = Domain::create(0);
  if (!domain) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  const auto slot = (*domain)->join(os::own_pid());
  if (!slot) return refuse(CUDA_ERROR_OPERATING_SYSTEM);
  return DomainMembership{std::move(*domain), *slot, std::nullopt};
}

}  // namespace firebreak::softgpu::driver
