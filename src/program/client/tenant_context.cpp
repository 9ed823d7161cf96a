// SPDX-License-Identifier: Apache-2.0
#include "program/client/tenant_context.h"

#include "program/cuda/small_context.h"

namespace firebreak::client {

Outcome<TenantContext> make_small_context(int device, unsigned int multiprocessors) {
  // Whoever uses the context has the driver loaded as well: it outlives this.
  const auto driver = cuda::Driver::open();
  if (!driver) return cuda_failure(driver.error());
  const auto found = cuda::Device::get(**driver, device);
  if (!found) return cuda_failure(found.error());
  auto made = cuda::create_small_context(*found, multiprocessors);
  if (!made) return cuda_failure(made.error());
  return TenantContext{std::move(made->context).release(), made->is_small};
}

}  // namespace firebreak::client
