// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/source_traits.h"

#include <algorithm>
#include <array>

namespace firebreak::fault {
namespace {

constexpr std::array table{
#define FIREBREAK_SOURCE(which, ...) SourceTraits{.source = FaultSource::which, __VA_ARGS__},
#include "agent/faults/fault/sources.def"
#undef FIREBREAK_SOURCE
};

}  // namespace

std::span<const SourceTraits> all_source_traits() { return table; }

const SourceTraits& traits_of(FaultSource source) {
  return table[std::min(static_cast<std::size_t>(source), table.size() - 1)];
}

}  // namespace firebreak::fault
