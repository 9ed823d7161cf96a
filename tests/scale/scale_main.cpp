// SPDX-License-Identifier: Apache-2.0
/// Prints what so many pairs cost, and exits 0 only if all of them were kept alive.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ground/base/spread_json.h"
#include "ground/os/file.h"
#include "ground/platform/machine.h"
#include "tests/scale/scale.h"

namespace firebreak::scale {
namespace {

using Json = nlohmann::ordered_json;

Json described(const ProcessCost& cost) {
  return {{"processes", cost.processes},
          {"descriptors", cost.descriptors},
          {"resident_kib", cost.resident_kib},
          {"cpu_ms", cost.cpu_ms}};
}

Json described(const Figures& figures) {
  return {{"tenants", figures.tenants},
          {"gpus", figures.gpus},
          {"allocations", figures.allocations},
          {"join_ms", figures.join_ms},
          {"status_ms", spread_json(spread_of(figures.status_ms), Values::All)},
          {"status_bytes", figures.status_bytes},
          {"agent_idle_percent_of_a_core", figures.idle_percent},
          {"agent_restart_ms", figures.restart_ms},
          {"all_processes_back_ms", figures.rejoin_ms},
          {"tenants_hit_by_the_fault", figures.hit},
          {"fault_to_promotion_ms", spread_json(spread_of(figures.promotion_ms), Values::All)},
          {"fault_to_first_kernel_ms", spread_json(spread_of(figures.first_kernel_ms), Values::All)},
          {"protected_again_ms", spread_json(spread_of(figures.protected_again_ms), Values::All)},
          {"agent", described(figures.agent)},
          {"next_agent", described(figures.next_agent)},
          {"shelves", described(figures.shelves)},
          {"supervisor", described(figures.supervisor)}};
}

struct Options {
  Settings settings;
  std::uint32_t gpus = 0;
  std::vector<std::uint32_t> tenants = {1, 10, 100};
  std::string json_path;
};

/// An MPS server has 60 clients, and the rogue is one.
constexpr std::uint32_t pairs_of_a_gpu = 59;

Result<Figures> run_once(Settings settings) {
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  auto platform = platform::choose(directory->path() + "/gpu", "soft");
  if (!platform) return propagate(platform);
  // As much memory as all of them together say they need; nobody touches it.
  platform->environment.emplace_back("FIREBREAK_SOFTGPU_MEMORY_MIB", "1048576");
  platform->environment.emplace_back("FIREBREAK_SOFTGPU_COUNT", std::to_string(settings.gpus));
  settings.programs = FIREBREAK_PROGRAMS;
  settings.directory = directory->path();
  const SystemClock clock;
  Scale scale(settings, *platform, clock, [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  return scale.run();
}

Status run(const Options& options) {
  auto platform = platform::choose({}, "soft");
  if (!platform) return propagate(platform);
  const auto machine = platform::describe_machine(*platform);
  Json runs = Json::array();
  for (const std::uint32_t tenants : options.tenants) {
    Settings settings = options.settings;
    settings.tenants = tenants;
    settings.gpus = options.gpus != 0 ? options.gpus : (tenants + pairs_of_a_gpu - 1) / pairs_of_a_gpu;
    const auto figures = run_once(settings);
    if (!figures) return propagate(figures, fmt::format("{} tenants", tenants));
    runs.push_back(described(*figures));
  }
  const Json out = {{"device", machine.gpu},
                    {"linux", machine.linux_release},
                    {"commit", machine.commit},
                    {"date", machine.date},
                    {"command", fmt::format("firebreak_scale --tenants {} --more-memory {}",
                                            fmt::join(options.tenants, ","), options.settings.more_memory)},
                    {"runs", runs}};
  const std::string text = out.dump(1) + "\n";
  if (options.json_path.empty()) {
    fmt::print("{}", text);
  } else if (!(std::ofstream(options.json_path) << text)) {
    return fail(ErrorCode::Internal, "cannot write " + options.json_path);
  }
  return {};
}

}  // namespace
}  // namespace firebreak::scale

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  scale::Options options;
  CLI::App app{"Many pairs with many allocations each, on software GPUs."};
  app.add_option("--tenants", options.tenants, "How many at once; several numbers: one run each")
      ->delimiter(',')
      ->check(CLI::Range(1U, 8 * scale::pairs_of_a_gpu));
  app.add_option(
         "--gpus", options.gpus,
         "How many software GPUs (default: one for each 59 pairs, since an MPS server has 60 clients, "
         "and the one that faults is one)")
      ->check(CLI::Range(1U, 8U));
  app.add_option("--more-memory", options.settings.more_memory,
                 "Allocations of each, besides the sample tenant's five")
      ->check(CLI::Range(0u, 1019u));
  app.add_option("--json", options.json_path, "Write the figures to this file");
  CLI11_PARSE(app, argument_count, arguments);
  const Status ran = scale::run(options);
  if (ran) return 0;
  fmt::print(stderr, "firebreak_scale: {}\n", to_string(ran.error()));
  return 1;
}
