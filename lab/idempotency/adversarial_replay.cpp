// SPDX-License-Identifier: Apache-2.0
#include "idempotency/adversarial_replay.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "idempotency/adversarial_kernel.h"
#include "idempotency/traced_gpu.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"

namespace firebreak::idempotency {
namespace {

struct MadeUp {
  std::string kind;
  RecordedImage image;
  RecordedLaunch launch;
  RecordedKernel kernel;  ///< borrows from the image
};

std::string make_text(AdversarialKind kind, std::mt19937_64& random) {
  while (true) {
    std::string text = make_adversarial_kernel(kind, random);
    if (text.find("cvta.const") == std::string::npos) return text;
  }
}

AdversarialKind kind_at(std::uint64_t number) {
  const AdversarialKind kind = adversarial_kinds[number % adversarial_kinds.size()];
  return kind == AdversarialKind::ConstantAlias ? AdversarialKind::Mixed : kind;
}

Status make(std::uint64_t number, std::mt19937_64& random, MadeUp& made) {
  const AdversarialKind kind = kind_at(number);
  made.kind = to_string(kind);
  made.image.text = make_text(kind, random);
  auto module = ptx::parse(made.image.text);
  if (!module) return propagate(module);
  made.image.module = *std::move(module);
  const std::uint32_t index = ptx::find_function(made.image.module, "k");
  const ptx::Function& function = made.image.module.functions.at(index);
  const auto summary =
      made.image.summaries.emplace("k", access::summarise(made.image.module, function)).first;
  TracedGpu places;  // addresses as a recording has them
  const RandomBuffers buffers = allocate_adjacent_buffers(places);
  const LaunchCase launch = make_adversarial_launch(buffers, random);
  made.launch.kernel = launch.kernel;
  made.launch.image = std::to_string(number);
  made.launch.code = "ptx";
  made.launch.arguments.grid = {launch.grid.x, launch.grid.y, launch.grid.z};
  made.launch.arguments.block = {launch.block.x, launch.block.y, launch.block.z};
  made.launch.parameters = launch.parameters;
  made.launch.memory.assign(places.memory().begin(), places.memory().end());
  made.kernel = {&made.image, &function, &summary->second, {}};
  return {};
}

nlohmann::json to_json(std::uint64_t number, const MadeUp& made, const ReplayReport& report) {
  nlohmann::json json{{"kernel", number}, {"kind", made.kind}};
  if (!report.left_out.empty()) {
    json["left_out"] = report.left_out;
    return json;
  }
  json["verdict"] = access::to_string(report.decision.verdict);
  json["data"] = to_string(report.data);
  json["accesses"] = report.access_count;
  if (report.is_whole) json["is_idempotent"] = report.truth.is_idempotent;
  json["leaves_to_chance"] = report.leaves_to_chance;
  json["redone"] = report.redo_count;
  json["problem"] = report.problem;
  if (!report.problem.empty()) json["text"] = made.image.text;
  return json;
}

void print(const nlohmann::json& json) {
  fmt::print("{}\n", json.dump());
  (void)std::fflush(stdout);
}

}  // namespace

Status replay_adversarial(const AdversarialReplay& options, const ReplayOptions& replay) {
  auto replayer = Replayer::open(replay);
  if (!replayer) return propagate(replayer);
  std::mt19937_64 seeds(options.seed);
  for (std::uint64_t number = 0; number < options.kernels; ++number) {
    std::mt19937_64 random(seeds());
    if (number < options.begin) continue;
    MadeUp made;
    if (Status done = make(number, random, made); !done) return done;
    print({{"begin", number}});
    const auto report = (*replayer)->play(made.launch, made.kernel, MadeUpData::Numbers);
    if (report) {
      print(to_json(number, made, *report));
      continue;
    }
    // Its context would wait for a kernel that does not end.
    (void)replayer->release();
    return propagate(report, fmt::format("kernel {}", number));
  }
  return {};
}

}  // namespace firebreak::idempotency
