// SPDX-License-Identifier: Apache-2.0
#include "soak/epochs.h"

#include <fmt/format.h>

namespace firebreak::soak {

/// The same may be told twice: by an agent that was killed before it wrote it down, and by the next.
std::optional<std::string> Epochs::hear(const abi::Event& event) {
  if (event.what == abi::EventKind::MemoryReleased) offices_.erase(event.tenant);
  if (event.what != abi::EventKind::Promote && event.what != abi::EventKind::BegunAnew) return std::nullopt;
  const Office now{event.epoch, event.pid};
  const auto [found, is_first] = offices_.try_emplace(event.tenant, now);
  const Office before = found->second;
  if (is_first || now.epoch > before.epoch) {
    found->second = now;
    return std::nullopt;
  }
  if (now.epoch == before.epoch && now.pid == before.pid) return std::nullopt;
  return fmt::format("{}: epoch {} began with process {}, after epoch {} with process {}", event.tenant,
                     now.epoch, now.pid, before.epoch, before.pid);
}

}  // namespace firebreak::soak
