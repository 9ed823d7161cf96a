// SPDX-License-Identifier: Apache-2.0
/// Prints what one user's flood does to another's tenants, and exits 0 only if all of them were kept alive.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "ground/base/spread_json.h"
#include "ground/os/file.h"
#include "ground/platform/machine.h"
#include "tests/flood/flood.h"

namespace firebreak::flood {
namespace {

using Json = nlohmann::ordered_json;

Json spread(const std::vector<double>& values, Values which = Values::None) {
  return spread_json(spread_of(values), which);
}

Json described(const Seen& seen) {
  Json out = {{"step_ms", spread(seen.step_ms)},
              {"step_ms_mean_of_each_round", seen.step_ms_means},
              {"agent_percent_of_a_core", 100 * seen.agent_cpu_ms / seen.lasted_ms}};
  if (!seen.promotion_ms.empty()) {
    out["signal_to_promotion_ms"] = spread(seen.promotion_ms);
    out["signal_to_first_kernel_ms"] = spread(seen.first_kernel_ms);
  }
  if (!seen.replaced_ms.empty()) out["hung_agent_replaced_ms"] = spread(seen.replaced_ms, Values::All);
  return out;
}

/// The middle one of the rounds' own.
double change_percent(const Seen& seen, const Seen& against) {
  std::vector<double> all;
  for (std::size_t i = 0; i < std::min(seen.step_ms_means.size(), against.step_ms_means.size()); ++i)
    all.push_back(100 * (seen.step_ms_means[i] / against.step_ms_means[i] - 1));
  return spread_of(all).p50;
}

Json described(const Figures& figures) {
  const Seen& nobody = figures.beside.at(Beside::Nobody);
  const Seen& flood = figures.beside.at(Beside::Flood);
  const Seen& computing = figures.beside.at(Beside::Computing);
  Json out = {{"step_change_percent",
               {{"flood_against_nobody", change_percent(flood, nobody)},
                {"computing_against_nobody", change_percent(computing, nobody)},
                {"flood_against_computing", change_percent(flood, computing)}}},
              {"steps", figures.steps},
              {"agents_replaced_unasked", figures.agents_replaced_unasked},
              {"flood", {{"lasted_s", figures.flood_lasted_ms / 1e3}}}};
  for (const auto& [name, count] : figures.flood) out["flood"][name] = count;
  Json& beside = out["beside"];
  for (const auto& [what, seen] : figures.beside) beside[to_string(what)] = described(seen);
  return out;
}

/// The status is what ctest takes for skipped.
constexpr int not_here = 77;

struct Options {
  Settings settings;
  double seconds = 6;
  double between_hangs_s = 0;
  std::string json_path;
};

Status run(Options options) {
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  auto platform = platform::choose(directory->path() + "/gpu", "soft");
  if (!platform) return propagate(platform);
  platform->environment.emplace_back("FIREBREAK_SOFTGPU_COUNT", "2");
  const auto machine = platform::describe_machine(*platform);
  Settings& settings = options.settings;
  settings.programs = FIREBREAK_PROGRAMS;
  settings.directory = directory->path();
  settings.lasts = Milliseconds(static_cast<std::int64_t>(options.seconds * 1e3));
  settings.between_hangs = Milliseconds(static_cast<std::int64_t>(options.between_hangs_s * 1e3));
  const SystemClock clock;
  Flood flood(settings, *platform, clock, [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  const auto figures = flood.run();
  if (!figures) return propagate(figures);
  Json out = {
      {"what",
       "steps and promotions of one user's pairs, and an agent that hangs, while another user floods the "
       "agent"},
      {"device", machine.gpu},
      {"linux", machine.linux_release},
      {"cpus", std::thread::hardware_concurrency()},
      {"commit", machine.commit},
      {"date", machine.date},
      {"command",
       fmt::format("firebreak_flood --rounds {} --seconds {} --faults {} --hangs {} --between-hangs-s {}",
                   settings.rounds, options.seconds, settings.faults, settings.hangs,
                   options.between_hangs_s)}};
  out.update(described(*figures));
  const std::string text = out.dump(1) + "\n";
  if (options.json_path.empty()) {
    fmt::print("{}", text);
  } else if (!(std::ofstream(options.json_path) << text)) {
    return fail(ErrorCode::Internal, "cannot write " + options.json_path);
  }
  return {};
}

}  // namespace
}  // namespace firebreak::flood

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  flood::Options options;
  CLI::App app{"One user floods the agent while another's tenants work, on software GPUs; as root."};
  app.add_option("--pairs", options.settings.pairs, "Of the one who works")->check(CLI::Range(1U, 16U));
  app.add_option("--rounds", options.settings.rounds,
                 "So often steps are timed beside nobody, the flood, and as much computing")
      ->check(CLI::Range(1U, 1000U));
  app.add_option("--seconds", options.seconds, "Of each")->check(CLI::Range(0.5, 600.0));
  app.add_option("--faults", options.settings.faults, "Without the flood, and as many beside it");
  app.add_option("--hangs", options.settings.hangs, "Of the agent, the same");
  app.add_option("--between-hangs-s", options.between_hangs_s,
                 "The agent lives so long before each; where it has hung lately it gets more time")
      ->check(CLI::Range(0.0, 600.0));
  app.add_option("--json", options.json_path, "Write the figures to this file");
  CLI11_PARSE(app, argument_count, arguments);
  if (::geteuid() != 0) {
    fmt::print(stderr, "firebreak_flood: only root can be two users\n");
    return flood::not_here;
  }
  const Status ran = flood::run(options);
  if (ran) return 0;
  fmt::print(stderr, "firebreak_flood: {}\n", to_string(ran.error()));
  return 1;
}
