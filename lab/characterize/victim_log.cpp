// SPDX-License-Identifier: Apache-2.0
#include "characterize/victim_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace firebreak::characterize {

using nlohmann::json;

void VictimLog::begin(std::int64_t now_ns) {
  record_ = {};
  record_.gaps.reserve(most_gaps + 1);
  last_ns_ = now_ns;
}

void VictimLog::kernel_done(std::int64_t now_ns) {
  ++record_.kernels;
  keep(now_ns);
}

void VictimLog::keep(std::int64_t now_ns) {
  const Gap gap{std::exchange(last_ns_, now_ns), now_ns};
  auto& gaps = record_.gaps;
  if (gaps.size() == most_gaps && gap.length_ns() <= gaps.back().length_ns()) return;
  const auto longer = [&gap](const Gap& other) { return other.length_ns() >= gap.length_ns(); };
  gaps.insert(std::ranges::partition_point(gaps, longer), gap);
  if (gaps.size() > most_gaps) gaps.pop_back();
}

void VictimLog::failed(std::int64_t now_ns, std::string error) {
  keep(now_ns);
  record_.error = std::move(error);
  record_.error_at_ns = now_ns;
}

std::string to_line(const VictimRecord& record) {
  json gaps = json::array();
  for (const Gap& gap : record.gaps) gaps.push_back({gap.from_ns, gap.to_ns});
  return json{{"kernels", record.kernels},
              {"gaps", std::move(gaps)},
              {"error", record.error},
              {"error_at_ns", record.error_at_ns}}
      .dump();
}

Result<VictimRecord> parse_victim_record(const std::string& line) {
  try {
    const json parsed = json::parse(line);
    VictimRecord record;
    record.kernels = parsed.at("kernels").get<std::uint64_t>();
    for (const json& gap : parsed.at("gaps"))
      record.gaps.push_back({gap.at(0).get<std::int64_t>(), gap.at(1).get<std::int64_t>()});
    record.error = parsed.at("error").get<std::string>();
    record.error_at_ns = parsed.at("error_at_ns").get<std::int64_t>();
    return record;
  } catch (const json::exception& wrong) {
    return fail(ErrorCode::Protocol, std::string("no victim's record: ") + wrong.what());
  }
}

}  // namespace firebreak::characterize
