// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fstream>

#include "cli/commands.h"
#include "demo/acts.h"
#include "demo/judge.h"
#include "demo/report.h"
#include "demo/table.h"
#include "inject/catalogue.h"
#include "os/temporary_directory.h"
#include "platform/platform.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string fault = "misaligned-load";
  std::string json_path;
  std::string html_path;
  std::string size;
  std::uint64_t steps = 0;
  std::uint64_t seed = 1;
};

/// A size for which the acts take seconds and a fault finds the tenants at work.
demo::Settings settings_for(const Options& options, platform::Gpu gpu, const std::string& directory) {
  demo::Settings settings;
  settings.fault = options.fault;
  settings.programs = program_folder();
  settings.directory = directory;
  const bool real = gpu == platform::Gpu::Real;
  settings.size = !options.size.empty() ? options.size : real ? "medium" : "small";
  settings.steps = options.steps != 0 ? options.steps : real ? 400 : 80;
  settings.pace = Milliseconds(real ? 5 : 10);
  settings.seed = options.seed;
  return settings;
}

Status write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(ErrorCode::Internal, "cannot write " + path);
  return {};
}

Result<demo::Play> play(const Options& options) {
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  auto platform = platform::choose(directory->path() + "/gpu");
  if (!platform) return propagate(platform);
  const SystemClock clock;
  return demo::play(settings_for(options, platform->gpu, directory->path()), *platform, clock,
                    [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
}

int run(const Options& options) {
  if (inject::find(options.fault) == nullptr) {
    const inject::Kind* close = inject::closest(options.fault);
    const std::string meant = close == nullptr ? "" : fmt::format("did you mean '{}'? ", close->name);
    return complain(
        fmt::format("no fault kind '{}' ({}`firebreak inject --list` shows all)", options.fault, meant));
  }
  const auto played = play(options);
  if (!played) return complain(to_string(played.error()));
  const auto checks = demo::judge(*played);
  fmt::print("{}\n{}\n{}", demo::render_table(*played), demo::render_timeline(*played),
             demo::render_verdict(checks));
  for (const auto& [path, text] : {std::pair(options.json_path, demo::to_json(*played, checks)),
                                   std::pair(options.html_path, demo::to_html(*played, checks))}) {
    if (const Status written = write_file(path, text); !written) return complain(to_string(written.error()));
  }
  return demo::all_observed(checks) ? 0 : 1;
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("demo",
                                         "Three acts: no fault; a fault under stock MPS, everybody dies; the "
                                         "same with Firebreak, only the rogue does");
  command->add_option("--fault", options->fault, "What the rogue does, a kind of `firebreak inject --list`")
      ->capture_default_str();
  command->add_option("--json", options->json_path, "Write the figures to this file");
  command->add_option("--html", options->html_path, "Write a page with the timeline drawn to this file");
  command->add_option("--size", options->size, "small or medium (default: by the GPU)")
      ->check(CLI::IsMember({"small", "medium"}));
  command->add_option("--steps", options->steps, "Steps that each tenant takes (default: by the GPU)");
  command->add_option("--seed", options->seed, "Of the tenants' weights and inputs")->capture_default_str();
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace firebreak::cli
