// SPDX-License-Identifier: Apache-2.0
#include "soak/record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ground/base/spread_json.h"

namespace firebreak::soak {
namespace {

using Json = nlohmann::ordered_json;

Json described(const Resources& resources) {
  return {{"agent_descriptors", resources.agent_descriptors},
          {"agent_resident_kib", resources.agent_resident_kib},
          {"supervisor_descriptors", resources.supervisor_descriptors},
          {"supervisor_resident_kib", resources.supervisor_resident_kib},
          {"shared_memory_files", resources.shared_memory_files},
          {"tenants", resources.tenants}};
}

Json described(const std::map<std::string, Waits>& all) {
  Json out = Json::object();
  for (const auto& [kind, waits] : all) {
    out[kind] = {{"fault_to_promotion_ms", spread_json(spread_of(waits.promoted_ms), Values::All)},
                 {"fault_to_first_kernel_ms", spread_json(spread_of(waits.first_kernel_ms), Values::All)}};
  }
  return out;
}

/// A line a kind.
std::string to_text(const std::map<std::string, Waits>& all) {
  std::string text;
  for (const auto& [kind, waits] : all) {
    const Spread first_kernel = spread_of(waits.first_kernel_ms);
    text +=
        fmt::format("{}: {} taken over, the first kernel done after {:.2f} ms (median), {:.2f} ms (worst)\n",
                    kind, first_kernel.count, first_kernel.p50, first_kernel.max);
  }
  return text;
}

}  // namespace

std::string to_text(const Record& record) {
  std::string text = fmt::format(
      "{} faults and {} kills of the agent in {:.0f} s: {} epochs begun, {} promotions told,\n"
      "{} tenants lost and begun anew, {} tenants finished with {} steps, the longest pause {:.0f} ms\n",
      record.faults, record.agent_kills, record.lasted_s, record.epochs, record.takeovers.promotions(),
      record.losses, record.tenants, record.steps, record.longest_pause_ms);
  if (record.stalls + record.broken_links + record.failed_starts + record.refused > 0) {
    text += fmt::format(
        "the agent stood still {} times, {} links broke, {} starts failed, {} of a crowd were refused\n",
        record.stalls, record.broken_links, record.failed_starts, record.refused);
  }
  text += to_text(record.takeovers.waits());
  for (const std::string& line : record.violations) text += fmt::format("violated: {}\n", line);
  if (record.violations.empty()) {
    text += "every output as without a fault, no committed step lost, nothing left behind\n";
  }
  return text;
}

std::string to_json(const Record& record, const platform::Machine& machine, const std::string& command,
                    std::uint64_t seed) {
  const Json out = {{"device", machine.gpu},
                    {"driver", machine.driver},
                    {"linux", machine.linux_release},
                    {"commit", machine.commit},
                    {"date", machine.date},
                    {"command", command},
                    {"seed", seed},
                    {"faults", record.faults},
                    {"faults_by_target", record.faults_by_target},
                    {"faults_by_kind", record.faults_by_kind},
                    {"agent_kills", record.agent_kills},
                    {"tenants_finished", record.tenants},
                    {"epochs", record.epochs},
                    {"promotions_told", record.takeovers.promotions()},
                    {"takeovers", described(record.takeovers.waits())},
                    {"losses", record.losses},
                    {"agent_stood_still", record.stalls},
                    {"broken_links", record.broken_links},
                    {"failed_starts", record.failed_starts},
                    {"refused", record.refused},
                    {"steps", record.steps},
                    {"longest_pause_ms", record.longest_pause_ms},
                    {"lasted_s", record.lasted_s},
                    {"before", described(record.before)},
                    {"after", described(record.after)},
                    {"violations", record.violations}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace firebreak::soak
