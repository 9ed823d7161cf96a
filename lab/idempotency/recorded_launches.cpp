// SPDX-License-Identifier: Apache-2.0
#include "idempotency/recorded_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "access/describe.h"
#include "ptx/parse.h"

namespace firebreak::idempotency {
namespace {

using Json = nlohmann::json;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The numbers of one process; those that are not there are 0.
class Counts {
 public:
  explicit Counts(const std::filesystem::path& path) : bytes_(content_of(path)) {}
  std::uint64_t operator[](std::size_t index) const {
    std::uint64_t value = 0;
    if ((index + 1) * sizeof value <= bytes_.size())
      std::memcpy(&value, bytes_.data() + index * sizeof value, sizeof value);
    return value;
  }

 private:
  std::string bytes_;
};

std::optional<std::vector<std::byte>> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 2 <= text.size(); at += 2) {
    char* end = nullptr;
    const std::string digits = text.substr(at, 2);
    bytes.push_back(static_cast<std::byte>(std::strtoul(digits.c_str(), &end, 16)));
    if (*end != '\0') return std::nullopt;
  }
  return bytes;
}

// One line, with what a decision borrows.
struct RecordedLaunch {
  std::string kernel;
  std::string image;
  std::string code;
  access::LaunchArguments arguments;
  std::vector<std::byte> parameters;
  std::vector<access::MemoryRange> memory;
  std::map<std::string, std::uint64_t> variables;
};

std::optional<RecordedLaunch> parse_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    RecordedLaunch launch;
    json.at("kernel").get_to(launch.kernel);
    json.at("image").get_to(launch.image);
    json.at("code").get_to(launch.code);
    json.at("grid").get_to(launch.arguments.grid);
    json.at("block").get_to(launch.arguments.block);
    json.at("variables").get_to(launch.variables);
    auto parameters = from_hex(json.at("parameters").get<std::string>());
    if (!parameters) return std::nullopt;
    launch.parameters = std::move(*parameters);
    for (const Json& range : json.at("memory")) {
      const auto address = range.at(0).get<std::uint64_t>();
      launch.memory.push_back({address, range.at(1).get<std::uint64_t>(), address});
    }
    return launch;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

struct Image {
  std::string problem;  ///< why nothing is known of it; empty: it was read
  ptx::Module module;
  std::map<std::string, access::KernelSummary> summaries;
};

// A thread reads what it writes itself, or another one may.
bool is_in_place(const access::KernelSummary& summary, const access::Decision& decision) {
  const access::AccessGroup& write = summary.groups[decision.first];
  const access::AccessGroup& read = summary.groups[decision.second];
  return write.address == read.address && write.width_bytes == read.width_bytes;
}

std::string cause_of(const access::KernelSummary& summary, const access::Decision& decision) {
  using access::DecisionReason;
  const auto at = [&](std::uint32_t group) {
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
  }
  return "";
}

void add(LaunchCount& count, std::uint64_t launches) {
  count.launches += launches;
  count.distinct += 1;
}

class Reader {
 public:
  explicit Reader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void read_process(const std::filesystem::path& process) {
    const Counts counts(process / "counts");
    result_.all.launches += counts[0];
    result_.unrecorded += counts[1];
    result_.graph_launches += counts[2];
    std::ifstream lines(process / "launches.jsonl");
    std::string line;
    for (std::size_t number = 0; std::getline(lines, line); ++number) {
      const std::optional<RecordedLaunch> launch = parse_line(line);
      result_.unread_lines += launch ? 0 : 1;
      result_.all.distinct += 1;
      if (launch) decide(*launch, counts[3 + number]);
    }
  }

  RecordedLaunches take() {
    result_.times = timer_.take();
    return std::move(result_);
  }

 private:
  Image& image_of(const std::string& name) {
    const auto [found, is_new] = images_.try_emplace(name);
    Image& image = found->second;
    if (!is_new) return image;
    const std::filesystem::path path = folder_ / "images" / (name + ".ptx");
    auto module = ptx::parse(content_of(path), path.string(), ptx::UnknownInstructions::Kept);
    if (module)
      image.module = std::move(*module);
    else
      image.problem = "PTX that cannot be read";
    return image;
  }

  const access::KernelSummary* summary_of(Image& image, const std::string& kernel) {
    if (const auto known = image.summaries.find(kernel); known != image.summaries.end())
      return &known->second;
    const auto& functions = image.module.functions;
    const auto found = std::find_if(functions.begin(), functions.end(), [&](const ptx::Function& each) {
      return each.is_entry && each.has_body && each.name == kernel;
    });
    if (found == functions.end()) return nullptr;
    return &image.summaries.emplace(kernel, access::summarise(image.module, *found)).first->second;
  }

  void decide(const RecordedLaunch& launch, std::uint64_t times) {
    const auto is_without = [&](const std::string& why) {
      add(result_.without_ptx[why], times);
      add(result_.kernels[launch.kernel][why], times);
    };
    if (!std::filesystem::exists(folder_ / "images" / (launch.image + ".ptx")))
      return is_without(launch.code == "machine code" ? launch.code : "code that is not known");
    Image& image = image_of(launch.image);
    if (!image.problem.empty()) return is_without(image.problem);
    const access::KernelSummary* const summary = summary_of(image, launch.kernel);
    if (summary == nullptr) return is_without("PTX without that kernel");
    std::vector<std::uint64_t> variables;
    for (const std::string& name : summary->variables) {
      const auto known = launch.variables.find(name);
      variables.push_back(known == launch.variables.end() ? 0 : known->second);
    }
    access::LaunchArguments arguments = launch.arguments;
    arguments.parameters = launch.parameters;
    arguments.memory = launch.memory;
    arguments.variable_addresses = variables;
    const access::Decision decision = access::decide(*summary, arguments, workspace_);
    timer_.measure(*summary, arguments, workspace_);
    const std::string verdict = access::to_string(decision.verdict);
    const std::string cause = cause_of(*summary, decision);
    add(result_.verdicts[verdict], times);
    if (!cause.empty()) add(result_.causes[verdict + ", " + cause], times);
    add(result_.kernels[launch.kernel][cause.empty() ? verdict : verdict + ", " + cause], times);
  }

  const std::filesystem::path folder_;
  RecordedLaunches result_;
  std::map<std::string, Image> images_;
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
  Reader reader(folder);
  bool is_anything_there = false;
  std::error_code ignored;
  for (const auto& process : std::filesystem::directory_iterator(folder, ignored)) {
    if (!std::filesystem::exists(process.path() / "launches.jsonl")) continue;
    is_anything_there = true;
    reader.read_process(process.path());
  }
  if (!is_anything_there) return fail(ErrorCode::NotFound, "no recorded launches in " + folder);
  return reader.take();
}

std::string to_json(const RecordedLaunches& recorded) {
  Json kernels = Json::object();
  for (const auto& [name, verdicts] : recorded.kernels) kernels[name] = to_json(verdicts);
  const Json json{{"all", to_json(recorded.all)},
                  {"unrecorded", recorded.unrecorded},
                  {"graph_launches", recorded.graph_launches},
                  {"unread_lines", recorded.unread_lines},
                  {"without_ptx", to_json(recorded.without_ptx)},
                  {"verdicts", to_json(recorded.verdicts)},
                  {"causes", to_json(recorded.causes)},
                  {"decision_us", to_json(recorded.times.decided)},
                  {"remembered_us", to_json(recorded.times.remembered)},
                  {"kernels", std::move(kernels)}};
  return json.dump(1) + "\n";
}

}  // namespace firebreak::idempotency
