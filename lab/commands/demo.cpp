// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "commands/commands.h"
#include "commands/kinds.h"
#include "commands/output_file.h"
#include "demo/acts.h"
#include "demo/judge.h"
#include "demo/report.h"
#include "demo/table.h"
#include "gpu/either_gpu.h"
#include "ground/os/event_loop.h"
#include "ground/os/file.h"
#include "ground/platform/platform.h"
#include "inject/catalogue.h"

namespace firebreak::commands {
namespace {

struct Options {
  std::string fault = "misaligned-load";
  std::string json_path;
  std::string html_path;
  std::string size;
  std::uint64_t steps = 0;
  std::uint64_t seed = 1;
  int repeat = 1;
  std::vector<std::string> parked = {"misaligned-load", "trap", "shared-out-of-bounds"};
};

/// The word that leaves a play out.
constexpr const char* none = "none";

/// Tells whether the kind's domain can be parked.
bool is_exception(const inject::Kind& kind) {
  return kind.fault_class == fault::FaultClass::Sm && inject::is_fault(kind);
}

/// Checks the fourth act's options.
Status check_parked(const Options& options) {
  if (options.parked == std::vector<std::string>{none}) return {};
  for (const std::string& name : options.parked) {
    const inject::Kind* kind = inject::find(name);
    if (kind == nullptr) return fail(ErrorCode::NotFound, no_such_kind(name));
    if (!is_exception(*kind))
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("'{}' is no exception of an SM, so nobody is parked", name));
    if (std::ranges::count(options.parked, name) > 1)
      return fail(ErrorCode::InvalidArgument, fmt::format("'{}' is named twice", name));
  }
  return {};
}

/// A size for which the acts take seconds and a fault finds the tenants at work.
demo::Settings settings_for(const Options& options, platform::Gpu gpu, const std::string& directory) {
  demo::Settings settings;
  settings.fault = options.fault;
  settings.spares_co_clients = inject::find(options.fault)->expectation.co_client == CUDA_SUCCESS;
  if (options.parked != std::vector<std::string>{none}) settings.parked_faults = options.parked;
  settings.programs = program_folder();
  settings.directory = directory;
  const bool real = gpu == platform::Gpu::Real;
  settings.size = !options.size.empty() ? options.size : real ? "medium" : "small";
  settings.steps = options.steps != 0 ? options.steps : real ? 400 : 80;
  settings.pace = Milliseconds(real ? 5 : 10);
  settings.seed = options.seed;
  return settings;
}

void tell(const std::string& line) { fmt::print(stderr, "{}\n", line); }

/// One play in a directory of its own, which is gone afterwards.
Result<demo::Play> play(const Options& options, const std::string& fault) {
  // Files that are made from now on are also taken away when somebody interrupts us: the acts listen to these
  // signals.
  if (auto held = os::hold_signals({SIGINT, SIGTERM, SIGHUP}); !held) return propagate(held);
  auto directory = os::TemporaryDirectory::create();
  if (!directory) return propagate(directory);
  auto platform = gpu::choose_either(directory->path() + "/gpu");
  if (!platform) return propagate(platform);
  const SystemClock clock;
  Options one = options;
  one.fault = fault;
  // The fourth act parks each kind in its own play where all kinds are played.
  if (options.fault == "all") one.parked = {is_exception(*inject::find(fault)) ? fault : none};
  return demo::play(settings_for(one, platform->gpu, directory->path()), *platform, clock, tell);
}

int show(const Options& options, const demo::Play& play) {
  const auto checks = demo::judge(play);
  fmt::print("{}\n{}\n{}", demo::render_table(play), demo::render_timeline(play),
             demo::render_verdict(checks));
  for (const auto& [path, text] : {std::pair(options.json_path, demo::to_json(play, checks)),
                                   std::pair(options.html_path, demo::to_html(play, checks))}) {
    if (const Status written = write_file(path, text); !written) return complain(to_string(written.error()));
  }
  return demo::all_observed(checks) ? 0 : 1;
}

/// A line a play; the figures of all of them in one file. Somebody's interruption ends them all: what was
/// played until then is written.
int play_all(const Options& options) {
  std::vector<demo::Play> plays;
  bool all_observed = true;
  bool interrupted = false;
  for (const inject::Kind* kind : inject::catalogue()) {
    if (interrupted) break;
    if (!inject::is_demonstrable(*kind)) {
      fmt::print("{:<24} left out: {}\n", kind->name, inject::why_not_demonstrable(*kind));
      continue;
    }
    for (int i = 0; i < options.repeat && !interrupted; ++i) {
      auto played = play(options, std::string(kind->name));
      if (!played) return complain(to_string(played.error()));
      interrupted = std::ranges::any_of(played->acts, &demo::ActRecord::interrupted);
      const auto checks = demo::judge(*played);
      all_observed = all_observed && demo::all_observed(checks);
      fmt::print("{:<24} {}", kind->name, demo::render_verdict(checks));
      for (const demo::Recovery& recovery : played->recoveries) {
        fmt::print("{:<24}   {}: seen {:.2f} ms, promoted {:.2f} ms, first kernel {:.2f} ms\n", "",
                   recovery.tenant, recovery.detected_ms, recovery.promoted_ms, recovery.resumed_ms);
      }
      std::fflush(stdout);
      if (!interrupted) plays.push_back(std::move(*played));
    }
  }
  const auto platform = gpu::choose_either();
  if (!platform) return complain(to_string(platform.error()));
  const std::string command = fmt::format("firebreak-lab demo --fault all --repeat {}", options.repeat);
  const auto text = demo::to_json(plays, platform::describe_machine(*platform), command);
  if (const Status written = write_file(options.json_path, text); !written)
    return complain(to_string(written.error()));
  return all_observed ? 0 : 1;
}

int run(const Options& options) {
  if (const Status good = check_parked(options); !good) return complain(to_string(good.error()));
  if (options.fault == "all") return play_all(options);
  const inject::Kind* kind = inject::find(options.fault);
  if (kind == nullptr) return complain(no_such_kind(options.fault));
  if (!inject::is_demonstrable(*kind))
    return complain(fmt::format("no play with '{}': {}", kind->name, inject::why_not_demonstrable(*kind)));
  const auto played = play(options, options.fault);
  return played ? show(options, *played) : complain(to_string(played.error()));
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("demo",
                                         "Four acts: no fault; a fault under stock MPS, everybody dies; the "
                                         "same with Firebreak, only the rogue does; SM exceptions in parked "
                                         "domains, unmodified programs finish");
  command
      ->add_option("--fault", options->fault,
                   "What the rogue does, a kind of `firebreak-lab inject --list`, or all")
      ->capture_default_str();
  command
      ->add_option("--parked", options->parked,
                   "Exceptions of the fourth act, kinds of class SM; none: it is left out. With --fault all "
                   "each play has its own")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--json", options->json_path, "Write the figures to this file");
  command->add_option("--html", options->html_path, "Write a page with the timeline drawn to this file");
  command->add_option("--size", options->size, "small or medium (default: by the GPU)")
      ->check(CLI::IsMember({"small", "medium"}));
  command->add_option("--steps", options->steps, "Steps that each tenant takes (default: by the GPU)");
  command->add_option("--seed", options->seed, "Of the tenants' weights and inputs")->capture_default_str();
  command->add_option("--repeat", options->repeat, "With --fault all: plays of each kind")
      ->check(CLI::Range(1, 1000));
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace firebreak::commands
