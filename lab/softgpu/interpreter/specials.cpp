// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/specials.h"

#include <cstddef>

namespace firebreak::softgpu {

using ptx::SpecialRegister;

static_assert(static_cast<std::size_t>(SpecialRegister::CurrentGraphExec) < SpecialValues::narrow_count);

std::optional<SpecialPlace> place_of(SpecialRegister which) {
  switch (which) {
    case SpecialRegister::None:
    case SpecialRegister::Clock:
    case SpecialRegister::ClockHi:
    case SpecialRegister::Clock64:
    case SpecialRegister::Globaltimer:
    case SpecialRegister::GlobaltimerLo:
    case SpecialRegister::GlobaltimerHi:
      return std::nullopt;
    case SpecialRegister::Gridid:
    case SpecialRegister::CurrentGraphExec:
      return SpecialPlace{static_cast<std::uint32_t>(offsetof(SpecialValues, grid_id)), 8};
    default: {
      const auto offset = static_cast<std::size_t>(which) * sizeof(SpecialValues::Narrow);
      return SpecialPlace{static_cast<std::uint32_t>(offset), 4};
    }
  }
}

}  // namespace firebreak::softgpu
