// SPDX-License-Identifier: Apache-2.0
#include "stage/fault_report.h"

#include <charconv>

namespace firebreak::stage {

void FaultListener::hear(const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  std::int64_t at_ns = 0;
  if (space != std::string::npos) std::from_chars(line.data() + space + 1, line.data() + line.size(), at_ns);
  if (word == "prepared") prepared = true;
  if (word == "raised") report = FaultReport{at_ns, 0, {}};
  if (word == "answered" && report) {
    report->answered_at_ns = at_ns;
    report->error_name = line.substr(line.rfind(' ') + 1);
  }
}

}  // namespace firebreak::stage
