// SPDX-License-Identifier: Apache-2.0
#include "kernels/regions/area.h"

#include <algorithm>
#include <optional>

namespace firebreak::regions {
namespace {

using access::Wide;

// Nothing: it is not inside of one range.
std::optional<access::StridedBox> box_of(const Area& area, std::span<const access::MemoryRange> memory) {
  access::StridedBox box;
  box.starts.base = static_cast<Wide>(area.address);
  box.width_bytes = static_cast<Wide>(area.width_bytes);
  if (area.rows > 1 && area.pitch_bytes > 0) {
    box.starts.axis_count = 1;
    box.starts.axes[0] = {0, static_cast<Wide>(area.pitch_bytes), static_cast<Wide>(area.rows) - 1};
    if (area.pitch_bytes == area.width_bytes) {
      box.width_bytes *= static_cast<Wide>(area.rows);
      box.starts.axis_count = 0;
    }
  }
  const auto inside = std::find_if(memory.begin(), memory.end(), [&](const access::MemoryRange& range) {
    const Wide begin = static_cast<Wide>(range.address);
    return begin <= box.begin() && box.end() <= begin + static_cast<Wide>(range.size_bytes);
  });
  if (inside == memory.end()) return std::nullopt;
  box.starts.base += static_cast<Wide>(inside->canonical_address) - static_cast<Wide>(inside->address);
  return box;
}

}  // namespace

access::OperationEffects unknown_effects() {
  access::OperationEffects effects;
  effects.decision = {access::Verdict::Unknown, access::DecisionReason::Refused};
  return effects;
}

access::OperationEffects fill_effects(const Area& to, std::span<const access::MemoryRange> memory) {
  access::OperationEffects effects;
  effects.decision.verdict = access::Verdict::Idempotent;
  if (to.width_bytes == 0 || to.rows == 0) return effects;
  const auto box = box_of(to, memory);
  if (!box) {
    effects.decision = {access::Verdict::Unknown, access::DecisionReason::OutsideMemory};
    return effects;
  }
  access::DecisionWorkspace::PlacedBox write;
  write.box = *box;
  write.is_fixed = true;
  effects.writes.push_back(write);
  effects.certain_writes.push_back(*box);
  return effects;
}

access::OperationEffects copy_effects(const Area& to, const Area& from,
                                      std::span<const access::MemoryRange> memory) {
  access::OperationEffects effects = fill_effects(to, memory);
  if (effects.writes.empty()) return effects;
  const auto box = box_of(from, memory);
  if (!box) {
    effects.decision = {access::Verdict::Unknown, access::DecisionReason::OutsideMemory};
    return effects;
  }
  access::DecisionWorkspace::PlacedBox read;
  read.box = *box;
  effects.reads.push_back(read);
  // The bytes that are in both may be read first or not: nobody promises it.
  effects.values_may_race = access::may_meet(effects.writes.front().box, read.box);
  return effects;
}

}  // namespace firebreak::regions
