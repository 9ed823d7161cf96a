// SPDX-License-Identifier: Apache-2.0
#include "idempotency/recorded_launches.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "idempotency/recorded_folder.h"
#include "kernels/access/describe.h"

namespace firebreak::idempotency {
namespace {

using Json = nlohmann::json;

// A thread reads what it writes itself, or another one may.
bool is_in_place(const access::KernelSummary& summary, const access::Decision& decision) {
  if (decision.second == access::constant_group) return false;
  const access::AccessGroup& write = summary.groups[decision.first];
  const access::AccessGroup& read = summary.groups[decision.second];
  return write.address == read.address && write.width_bytes == read.width_bytes;
}

}  // namespace

std::string cause_of(const access::KernelSummary& summary, const access::Decision& decision) {
  using access::DecisionReason;
  const auto at = [&](std::uint32_t group) {
    if (group == access::constant_group) return std::string("constant memory");
    return summary.instruction_names[summary.groups[group].instruction];
  };
  switch (decision.reason) {
    case DecisionReason::None:
      return "";
    case DecisionReason::Refused: {
      const std::size_t colon = summary.refusal.find(": ");
      return colon == std::string::npos ? summary.refusal : summary.refusal.substr(colon + 2);
    }
    case DecisionReason::ShortParameters:
      return "fewer parameters than the kernel has";
    case DecisionReason::Atomic:
      return "atomic: " + at(decision.first);
    case DecisionReason::Overlap:
      return (is_in_place(summary, decision) ? "in place: " : "a store meets another load: ") +
             at(decision.first) + " and " + at(decision.second);
    case DecisionReason::WideOverlap:
      return "somewhere in one allocation: " + at(decision.first) + " and " + at(decision.second);
    case DecisionReason::UnknownAddress:
      return "an address that is not known: " + at(decision.first);
    case DecisionReason::OutsideMemory:
      return "outside the recorded memory: " + at(decision.first);
    case DecisionReason::AliasedMemory:
      return "one memory at several addresses: " + at(decision.first);
    case DecisionReason::TooComplicated:
      return "too complicated an address: " + at(decision.first);
    case DecisionReason::ByOrder:
      return "where it writes depends on the order of threads: " + at(decision.first);
    case DecisionReason::OwnMemory:
      return "an address in shared or local memory that may be elsewhere";
    case DecisionReason::Constants:
      return "maybe constant memory: " + at(decision.first);
  }
  return "";
}

namespace {

void add(LaunchCount& count, std::uint64_t launches) {
  count.launches += launches;
  count.distinct += 1;
}

class Decider {
 public:
  explicit Decider(const std::string& folder) : images_(folder) {}

  void add_process(const RecordedTotals& totals) {
    result_.all.launches += totals.launches;
    result_.unrecorded += totals.unrecorded;
    result_.graph_launches += totals.graph_launches;
  }

  void add_launch(const std::optional<RecordedLaunch>& launch, std::uint64_t times) {
    result_.unread_lines += launch ? 0 : 1;
    result_.all.distinct += 1;
    if (launch) decide(*launch, times);
  }

  RecordedLaunches take() {
    result_.times = timer_.take();
    return std::move(result_);
  }

 private:
  void decide(const RecordedLaunch& launch, std::uint64_t times) {
    const RecordedKernel kernel = images_.find(launch);
    if (!kernel.problem.empty()) {
      add(result_.without_ptx[kernel.problem], times);
      add(result_.kernels[launch.kernel][kernel.problem], times);
      return;
    }
    if (kernel.image->is_beside) add(result_.beside, times);
    const access::KernelSummary& summary = *kernel.summary;
    const std::vector<std::uint64_t> variables = variable_addresses(summary, launch.variables);
    access::LaunchArguments arguments = launch.arguments;
    arguments.parameters = launch.parameters;
    arguments.memory = launch.memory;
    arguments.variable_addresses = variables;
    const access::Decision decision = access::decide(summary, arguments, workspace_);
    timer_.measure(summary, arguments, workspace_);
    const std::string verdict = access::to_string(decision.verdict);
    const std::string cause = cause_of(summary, decision);
    add(result_.verdicts[verdict], times);
    if (!cause.empty()) add(result_.causes[verdict + ", " + cause], times);
    add(result_.kernels[launch.kernel][cause.empty() ? verdict : verdict + ", " + cause], times);
  }

  RecordedImages images_;
  RecordedLaunches result_;
  access::DecisionWorkspace workspace_;
  DecisionTimer timer_;
};

Json to_json(const LaunchCount& count) {
  return {{"launches", count.launches}, {"distinct", count.distinct}};
}

Json to_json(const std::map<std::string, LaunchCount>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json[name] = to_json(count);
  return json;
}

Json to_json(const std::vector<std::chrono::nanoseconds>& sorted) {
  if (sorted.empty()) return nullptr;
  return {{"p50", percentile_us(sorted, 0.5)},
          {"p99", percentile_us(sorted, 0.99)},
          {"largest", percentile_us(sorted, 1)}};
}

}  // namespace

Result<RecordedLaunches> decide_recorded(const std::string& folder) {
  Decider decider(folder);
  const Status visited = visit_recorded(
      folder, {[&](const RecordedTotals& totals) { decider.add_process(totals); },
               [&](const auto& launch, std::uint64_t times) { decider.add_launch(launch, times); }});
  if (!visited) return propagate(visited);
  return decider.take();
}

std::string to_json(const RecordedLaunches& recorded) {
  Json kernels = Json::object();
  for (const auto& [name, verdicts] : recorded.kernels) kernels[name] = to_json(verdicts);
  const Json json{{"all", to_json(recorded.all)},
                  {"unrecorded", recorded.unrecorded},
                  {"graph_launches", recorded.graph_launches},
                  {"unread_lines", recorded.unread_lines},
                  {"beside_machine_code", to_json(recorded.beside)},
                  {"without_ptx", to_json(recorded.without_ptx)},
                  {"verdicts", to_json(recorded.verdicts)},
                  {"causes", to_json(recorded.causes)},
                  {"decision_us", to_json(recorded.times.decided)},
                  {"remembered_us", to_json(recorded.times.remembered)},
                  {"kernels", std::move(kernels)}};
  return json.dump(1) + "\n";
}

}  // namespace firebreak::idempotency
