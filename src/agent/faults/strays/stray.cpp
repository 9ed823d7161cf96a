// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/strays/stray.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ground/base/text.h"
#include "ground/base/units.h"

namespace firebreak::strays {
namespace {

using json = nlohmann::ordered_json;

/// A tenant's note and name may hold any bytes.
std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string describe(const Stray& stray) {
  const std::string where = stray.nearest.empty() ? "far from every allocation" : stray.nearest;
  const std::string by = stray.kernels.empty() ? "" : " by " + stray.kernels;
  return fmt::format("{} to {:#x}{}, {}", stray.access, stray.address, by, where);
}

const char* to_string(abi::GuardState state) {
  switch (state) {
    case abi::GuardState::On:
      return "on";
    case abi::GuardState::Off:
      return "off";
    case abi::GuardState::Starting:
      break;
  }
  return "starting";
}

std::string describe(const GuardReport& guard) {
  std::string text = to_string(guard.state);
  if (guard.state == abi::GuardState::On) text += fmt::format(", {} GiB", guard.guard_range_bytes / gib);
  if (!guard.note.empty()) text += ": " + printable(guard.note);
  return text;
}

std::string text_of(const Stray& stray) {
  const std::string name = stray.tenant ? fmt::format(" ({})", *stray.tenant) : std::string();
  return fmt::format("contained stray: {}; process {}{}, block {} of its strays", describe(stray), stray.pid,
                     name, stray.blocks);
}

std::string json_of(const Stray& stray) {
  return line_of({{"event", "stray"},
                  {"pid", stray.pid},
                  {"name", stray.tenant ? json(*stray.tenant) : json()},
                  {"domain", stray.domain},
                  {"access", stray.access},
                  {"address", fmt::format("{:#x}", stray.address)},
                  {"kernels", stray.kernels.empty() ? json() : json(stray.kernels)},
                  {"nearest", stray.nearest.empty() ? json() : json(stray.nearest)},
                  {"seen_ns", to_ns(stray.when)},
                  {"count", stray.count},
                  {"blocks", stray.blocks}});
}

std::string text_of(pid_t pid, const GuardReport& guard) {
  return fmt::format("guard of process {}: {}", pid, describe(guard));
}

std::string json_of(pid_t pid, const GuardReport& guard) {
  return line_of({{"event", "guard"},
                  {"pid", pid},
                  {"state", to_string(guard.state)},
                  {"note", guard.note.empty() ? json() : json(guard.note)},
                  {"guard_range_bytes", guard.guard_range_bytes}});
}

std::string text_of(pid_t pid, const Summary& summary) {
  return fmt::format("process {} has ended after {} strays into {} blocks of 2 MiB", pid, summary.count,
                     summary.blocks);
}

std::string json_of(pid_t pid, const Summary& summary) {
  return line_of({{"event", "strays"}, {"pid", pid}, {"count", summary.count}, {"blocks", summary.blocks}});
}

}  // namespace firebreak::strays
