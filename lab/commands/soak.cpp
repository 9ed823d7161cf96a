// SPDX-License-Identifier: Apache-2.0
#include "soak/soak.h"

#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <map>
#include <random>

#include "commands/commands.h"
#include "commands/output_file.h"
#include "gpu/either_gpu.h"
#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "inject/catalogue.h"

namespace firebreak::commands {
namespace {

struct Options {
  soak::Settings settings;
  std::optional<std::uint64_t> seed;
  int pace_ms = 20;
  int limit_s = 0;
  std::optional<std::uint32_t> agent_descriptors;
  std::string json_path;
};

/// Enough for those who stay, and not for a crowd.
constexpr std::uint32_t edges_descriptors = 256;
/// Room for whoever works at once; a crowd has too little.
constexpr std::uint32_t descriptors_of_a_pair = 32;

/// Lists kinds that end processes; faults of the device itself are left out, since no standby survives them.
std::vector<std::string> ordinary_faults() {
  std::vector<std::string> names;
  for (const inject::Kind* kind : inject::catalogue()) {
    if (inject::is_fault(*kind) && kind->fault_class != fault::FaultClass::Device) {
      names.emplace_back(kind->name);
    }
  }
  return names;
}

std::map<std::string, soak::Target> targets_by_name() {
  std::map<std::string, soak::Target> targets;
  for (const soak::Target each : soak::edge_targets) targets.emplace(to_string(each), each);
  return targets;
}

/// Names the selection, without what selects nothing.
std::string selection_of(const soak::Settings& settings) {
  std::string selection;
  if (settings.edges) selection += fmt::format(" --edges --agent-descriptors {}", settings.agent_descriptors);
  const std::size_t usual = settings.edges ? soak::edge_targets.size() : soak::all_targets.size();
  if (settings.targets.size() != usual) {
    std::vector<const char*> names;
    for (const soak::Target each : settings.targets) names.push_back(to_string(each));
    selection += fmt::format(" --target {}", fmt::join(names, ","));
  }
  if (settings.kinds != ordinary_faults())
    selection += fmt::format(" --kind {}", fmt::join(settings.kinds, ","));
  if (settings.limit > Milliseconds(0))
    selection += fmt::format(" --limit-s {}",
                             std::chrono::duration_cast<std::chrono::seconds>(settings.limit).count());
  return selection;
}

std::string command_of(const soak::Settings& settings) {
  return fmt::format(
      "firebreak-lab soak --tenants {} --at-once {} --faults {} --agent-kills {}{} "
      "--workload {} --size {} --steps {} --pace-ms {} --seed {}",
      settings.tenants, settings.at_once, settings.faults, settings.agent_kills, selection_of(settings),
      fmt::join(settings.workloads, ","), settings.size, settings.steps, settings.pace.count(),
      settings.seed);
}

Result<int> run(Options options) {
  if (auto held = os::hold_signals({SIGINT, SIGTERM, SIGHUP}); !held) return propagate(held);
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  auto platform = gpu::choose_either(directory->path() + "/gpu");
  if (!platform) return propagate(platform);
  soak::Settings& settings = options.settings;
  settings.programs = program_folder();
  settings.directory = directory->path();
  if (settings.agent_log.empty()) settings.agent_log = settings.directory + "/agent.log";
  settings.pace = Milliseconds(options.pace_ms);
  settings.limit = std::chrono::seconds(options.limit_s);
  settings.seed = options.seed ? *options.seed : std::random_device{}();
  if (settings.kinds.empty()) settings.kinds = ordinary_faults();
  if (settings.targets.empty() && settings.edges)
    settings.targets.assign(soak::edge_targets.begin(), soak::edge_targets.end());
  if (settings.targets.empty()) settings.targets.assign(soak::all_targets.begin(), soak::all_targets.end());
  if (settings.edges && !options.agent_descriptors) {
    const std::uint32_t more = settings.at_once > 4 ? settings.at_once - 4 : 0;
    options.agent_descriptors = edges_descriptors + more * descriptors_of_a_pair;
  }
  settings.agent_descriptors = options.agent_descriptors.value_or(0);
  const std::string command = command_of(settings);
  fmt::print("{}\n", command);
  std::fflush(stdout);
  const SystemClock clock;
  soak::Soak soak(settings, *platform, clock,
                  [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  const auto record = soak.run();
  if (!record) return propagate(record);
  fmt::print("{}", to_text(*record));
  const auto written = write_file(
      options.json_path, to_json(*record, platform::describe_machine(*platform), command, settings.seed));
  if (!written) return propagate(written);
  return record->violations.empty() ? 0 : 1;
}

}  // namespace

void add_soak(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  soak::Settings& settings = options->settings;
  CLI::App* command =
      app.add_subcommand("soak",
                         "Pairs at work for long, with faults of all kinds by a seed, and the agent "
                         "killed in between: nothing may be lost, wrong or left behind");
  command->add_option("--tenants", settings.tenants, "How many finish, at least")->capture_default_str();
  command->add_option("--at-once", settings.at_once, "How many of them share the GPU")
      ->capture_default_str()
      ->check(CLI::Range(1, 20));
  command->add_option("--faults", settings.faults)->capture_default_str();
  command
      ->add_option("--limit-s", options->limit_s,
                   "No more faults after so long; who works then finishes (0: all of them)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--agent-kills", settings.agent_kills)->capture_default_str();
  command->add_option("--seed", options->seed, "Of the faults; drawn and printed by default");
  command->add_option("--workload", settings.workloads, "What the tenants do, in turn")
      ->delimiter(',')
      ->check(CLI::IsMember({"decode", "denoise", "scribble"}))
      ->capture_default_str();
  command
      ->add_option("--target", settings.targets,
                   "Whom faults fall on: active, standby, both, server, neighbour, inside (default: these); "
                   "link, starts, crowd (with --edges: all)")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(targets_by_name()));
  command->add_flag(
      "--edges", settings.edges,
      "And tenants with children by fork, starts that fail, agents that stand still, links that "
      "break, and more tenants than the agent has descriptors for");
  command->add_option("--agent-descriptors", options->agent_descriptors,
                      "That the agent may have (with --edges 256, more for more than 4 at once; else as many "
                      "as this process)");
  command->add_option("--kind", settings.kinds, "Faults that are raised (default: all that end processes)")
      ->delimiter(',')
      ->check(CLI::IsMember(ordinary_faults()));
  command->add_option("--size", settings.size)
      ->check(CLI::IsMember({"small", "medium"}))
      ->capture_default_str();
  command->add_option("--steps", settings.steps, "Of each tenant")->capture_default_str();
  command->add_option("--pace-ms", options->pace_ms, "A step takes at least this long")
      ->capture_default_str();
  command->add_option("--agent-log", settings.agent_log, "Add all that the agent does to this file");
  command->add_option("--json", options->json_path, "Write the figures to this file");
  command->callback([options, &action] {
    action = [options] {
      const auto status = run(*options);
      return status ? *status : complain(to_string(status.error()));
    };
  });
}

}  // namespace firebreak::commands
