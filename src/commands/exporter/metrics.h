// SPDX-License-Identifier: Apache-2.0
/// The agent's status as metrics for Prometheus. Pure.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace firebreak::exporter {

/// Makes metrics of a status (`firebreak status --json`) that the agent gave at the observers' socket. Values
/// that an agent of another version does not say are left out, and nothing else.
std::vector<prometheus::MetricFamily> metrics_of(const std::string& status_json);

/// Makes the metrics where there is no agent: that alone.
std::vector<prometheus::MetricFamily> metrics_without_agent();

/// Gives the version of the agent which said it; empty: it does not say, since it is older than this program.
std::string version_in(const std::string& status_json);

}  // namespace firebreak::exporter
