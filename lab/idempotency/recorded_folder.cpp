// SPDX-License-Identifier: Apache-2.0
#include "idempotency/recorded_folder.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/ptx/parse.h"

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

std::optional<RecordedLaunch> parse_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    RecordedLaunch launch;
    json.at("kernel").get_to(launch.kernel);
    json.at("image").get_to(launch.image);
    json.at("code").get_to(launch.code);
    json.at("shared_bytes").get_to(launch.shared_bytes);
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

void visit_process(const std::filesystem::path& process, const RecordedVisitor& visitor) {
  const Counts counts(process / "counts");
  visitor.process({counts[0], counts[1], counts[2]});
  std::ifstream lines(process / "launches.jsonl");
  std::string line;
  for (std::size_t number = 0; std::getline(lines, line); ++number)
    visitor.launch(parse_line(line), counts[3 + number]);
}

}  // namespace

RecordedImage& RecordedImages::image_of(const RecordedLaunch& launch) {
  const auto [found, is_new] = images_.try_emplace(launch.image);
  RecordedImage& image = found->second;
  if (!is_new) return image;
  std::filesystem::path path = folder_ / "images" / (launch.image + ".ptx");
  if (!std::filesystem::exists(path)) {
    path = folder_ / "images" / (launch.image + ".beside.ptx");
    image.is_beside = true;
  }
  if (!std::filesystem::exists(path)) {
    image.problem = launch.code == "machine code" ? launch.code : "code that is not known";
    return image;
  }
  image.text = content_of(path);
  auto module = ptx::parse(image.text, path.string(), ptx::UnknownInstructions::Kept);
  if (module)
    image.module = std::move(*module);
  else
    image.problem = "PTX that cannot be read";
  return image;
}

RecordedKernel RecordedImages::find(const RecordedLaunch& launch) {
  RecordedImage& image = image_of(launch);
  if (!image.problem.empty()) return {&image, nullptr, nullptr, image.problem};
  const auto& functions = image.module.functions;
  const auto found = std::find_if(functions.begin(), functions.end(), [&](const ptx::Function& each) {
    return each.is_entry && each.has_body && each.name == launch.kernel;
  });
  if (found == functions.end()) return {&image, nullptr, nullptr, "PTX without that kernel"};
  auto known = image.summaries.find(launch.kernel);
  if (known == image.summaries.end())
    known = image.summaries.emplace(launch.kernel, access::summarise(image.module, *found)).first;
  return {&image, &*found, &known->second, {}};
}

Status visit_recorded(const std::filesystem::path& folder, const RecordedVisitor& visitor) {
  std::error_code ignored;
  std::vector<std::filesystem::path> processes;
  for (const auto& each : std::filesystem::directory_iterator(folder, ignored))
    if (std::filesystem::exists(each.path() / "launches.jsonl")) processes.push_back(each.path());
  std::sort(processes.begin(), processes.end());
  for (const auto& process : processes) visit_process(process, visitor);
  if (processes.empty()) return fail(ErrorCode::NotFound, "no recorded launches in " + folder.string());
  return {};
}

std::vector<std::uint64_t> variable_addresses(const access::KernelSummary& summary,
                                              const std::map<std::string, std::uint64_t>& variables) {
  std::vector<std::uint64_t> addresses;
  for (const std::string& name : summary.variables) {
    const auto known = variables.find(name);
    addresses.push_back(known == variables.end() ? 0 : known->second);
  }
  return addresses;
}

}  // namespace firebreak::idempotency
