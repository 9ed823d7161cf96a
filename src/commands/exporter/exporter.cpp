// SPDX-License-Identifier: Apache-2.0
#include "commands/exporter/exporter.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <utility>

#include "commands/exporter/metrics.h"

namespace firebreak::exporter {

std::string Exporter::text() const {
  const auto status = at_.ask();
  if (!status) {
    say(to_string(status.error()));
    return prometheus::TextSerializer().Serialize(metrics_without_agent());
  }
  const std::string its = version_in(*status);
  if (its.empty()) {
    say(fmt::format("the agent is older than this exporter ({}): it counts nothing (restart firebreakd)",
                    version_));
  } else if (its != version_) {
    say(fmt::format(
        "the agent is of version {}, this exporter of {}: what only one of them knows is left out", its,
        version_));
  } else {
    say(fmt::format("the agent answers, version {}", its));
  }
  return prometheus::TextSerializer().Serialize(metrics_of(*status));
}

void Exporter::say(const std::string& line) const {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(said_, line) == line) return;
  }
  at_.tell(line);
}

}  // namespace firebreak::exporter
