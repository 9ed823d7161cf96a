// SPDX-License-Identifier: Apache-2.0
#include "tests/characterize/characterization.h"

#include <fstream>

namespace firebreak::tests {

nlohmann::json Characterization::results() const {
  std::ifstream file(json_path);
  return nlohmann::json::parse(file, nullptr, false);
}

void Characterization::write_results(const nlohmann::json& results) const {
  std::ofstream(json_path) << results;
}

}  // namespace firebreak::tests
