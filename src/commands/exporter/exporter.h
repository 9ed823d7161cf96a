// SPDX-License-Identifier: Apache-2.0
/// Asks the agent for its status whenever somebody scrapes.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "ground/base/result.h"

namespace firebreak::exporter {

/// Thread safe: each scrape asks anew.
class Exporter {
 public:
  struct Surroundings {
    std::function<Result<std::string>()> ask;      ///< asks for the status
    std::function<void(const std::string&)> tell;  ///< one line for a person
  };
  /// `version`: of this program.
  Exporter(std::string version, Surroundings surroundings)
      : version_(std::move(version)), at_(std::move(surroundings)) {}

  /// Writes all metrics in Prometheus' text format.
  std::string text() const;

 private:
  void say(const std::string& line) const;

  std::string version_;
  Surroundings at_;
  mutable std::mutex mutex_;  ///< guards the next one
  mutable std::string said_;  ///< line that was said, until there is something else to say
};

}  // namespace firebreak::exporter
