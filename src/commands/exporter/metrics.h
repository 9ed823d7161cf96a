// SPDX-License-Identifier: Apache-2.0
/// The agent's status as metrics for Prometheus. Pure.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace firebreak::exporter {

/// What Prometheus is told where the agent has answered with that status (`firebreak status --json`), at the
/// observers' socket. What an agent of another version does not say is left out, and nothing else.
std::vector<prometheus::MetricFamily> metrics_of(const std::string& status_json);

/// And where there is no agent: that alone.
std::vector<prometheus::MetricFamily> metrics_without_agent();

/// That of the agent which said it; empty: it does not say, since it is older than this program.
std::string version_in(const std::string& status_json);

}  // namespace firebreak::exporter
