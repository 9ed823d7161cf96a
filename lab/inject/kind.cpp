// SPDX-License-Identifier: Apache-2.0
#include "inject/kind.h"

namespace firebreak::inject {

std::string_view why_not_demonstrable(const Kind& kind) {
  if (kind.fault_class == fault::FaultClass::Device)
    return "a fault of the device: another domain of the same GPU is no way out";
  if (!is_fault(kind)) return "the hardware is expected to let it pass";
  return {};
}

}  // namespace firebreak::inject
