// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/halted_multiprocessor.h"

#include <cstdlib>
#include <string>

#include "softgpu/environment.h"
#include "softgpu/machine/fault_delivery.h"
#include "softgpu/machine/fault_table.h"

namespace firebreak::softgpu {

HaltRules HaltRules::from_environment() {
  const double speed = speed_from_environment();
  HaltRules rules{delay_ns(halt_ms, speed), delay_ns(turn_ms, speed)};
  const char* const text = std::getenv(environment::halt_ms);
  if (text == nullptr) return rules;
  rules.limit_ns = delay_ns(std::strtod(text, nullptr), speed);
  if (std::string(text) == "endless") rules.limit_ns.reset();
  return rules;
}

std::uint32_t multiprocessor_of(std::uint32_t slot, std::uint64_t block) {
  constexpr std::uint64_t between_clients = 31;  // has no divisor in common with how many there are
  return static_cast<std::uint32_t>((slot * between_clients + block) % multiprocessors);
}

bool is_halted(const SharedGpu& gpu, const Domain& domain, const HaltRules& rules,
               std::uint32_t multiprocessor) {
  const auto hold = domain.hold();
  if (!hold || hold->exception.multiprocessor != multiprocessor || gpu.switches() != hold->switches)
    return false;
  return !rules.limit_ns || now_ns() < hold->dumps_due_ns + *rules.limit_ns;
}

}  // namespace firebreak::softgpu
