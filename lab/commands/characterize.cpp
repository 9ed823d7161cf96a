// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "characterize/campaign.h"
#include "characterize/page.h"
#include "characterize/plan.h"
#include "characterize/text.h"
#include "commands/commands.h"
#include "gpu/either_gpu.h"
#include "ground/os/addresses.h"
#include "ground/os/event_loop.h"
#include "ground/os/self.h"
#include "program/cuda/driver.h"
#include "softgpu/environment.h"

namespace firebreak::commands {
namespace {

namespace chz = firebreak::characterize;

/// The plan was not carried out to its end. That goes before all else, whatever there is so far: a part of
/// the runs is no verdict, and whoever stopped them learns that they were stopped.
constexpr int unfinished_status = 2;

struct Options {
  std::string gpu;
  std::vector<std::string> kinds;
  int repeat = 3;
  std::uint64_t seed = 1;
  std::string json_path;
  std::string html_path;
  std::string against_path;
  bool guard = false;
  std::int64_t hold_ms = 0;
  bool resume = false;
  double budget_s = 0;
};

/// One line that is rewritten where somebody looks; lines otherwise.
class ProgressLine {
 public:
  ProgressLine() : rewrites_(os::is_terminal(2)) {}
  void show(const std::string& line) {
    fmt::print(stderr, "{}{}{}", rewrites_ ? clear_line : "", line, rewrites_ ? "" : "\n");
    std::fflush(stderr);
  }
  void clear() {
    if (rewrites_) fmt::print(stderr, clear_line);
  }

 private:
  static constexpr const char* clear_line = "\r\033[K";
  bool rewrites_;
};

double softgpu_speed(const platform::Platform& platform) {
  const auto value = os::environment_variable(softgpu::environment::speed);
  return platform.gpu == platform::Gpu::Soft && value ? std::strtod(value->c_str(), nullptr) : 1.0;
}

std::string command_of(const Options& options) {
  std::string command = "firebreak-lab characterize";
  if (!options.gpu.empty()) command += " --gpu " + options.gpu;
  if (options.guard) command += " --guard";
  if (options.hold_ms > 0) command += fmt::format(" --hold-ms {}", options.hold_ms);
  for (std::size_t i = 0; i < options.kinds.size(); ++i)
    command += (i == 0 ? " --kinds " : ",") + options.kinds[i];
  return command + fmt::format(" --repeat {} --seed {}", options.repeat, options.seed);
}

chz::Expected expected_of(const inject::Kind& kind, const Options& options, const chz::ErrorName& name) {
  if (options.hold_ms > 0) return chz::expected_under_hold(kind, name);
  if (options.guard) return chz::expected_under_guard(kind, name, os::may_map_page_zero());
  return chz::expected_of(kind, name);
}

/// Makes results that name what is to be found out, and have found nothing yet.
Result<chz::Results> empty_results(const Options& options, const platform::Platform& platform) {
  const auto kinds = chz::choose_kinds(options.kinds);
  if (!kinds) return propagate(kinds);
  const auto driver = cuda::Driver::load(platform.cuda_library);
  if (!driver) return propagate(driver);
  chz::Results results;
  results.machine = platform::describe_machine(platform);
  results.command = command_of(options);
  results.seed = options.seed;
  results.repeat = options.repeat;
  results.softgpu_speed = softgpu_speed(platform);
  const auto name = [&](CUresult error) { return (*driver)->error_name(error); };
  for (const inject::Kind* kind : *kinds) {
    results.expected.push_back(expected_of(*kind, options, name));
  }
  return results;
}

/// The runs that the file holds already.
Status take_up(const Options& options, chz::Results& results) {
  const auto text = chz::read_file(options.json_path);
  if (!text) return text.error().code == ErrorCode::NotFound ? Status() : Status(propagate(text));
  auto before = chz::parse_results(*text);
  if (!before) return propagate(before, options.json_path);
  if (Status same = chz::same_origin(*before, results); !same) return propagate(same, options.json_path);
  results.machine.date = before->machine.date;
  results.runs = std::move(before->runs);
  // Held against today's catalogue, as the new runs are.
  for (chz::Run& run : results.runs) {
    const auto expected = std::ranges::find(results.expected, run.kind, &chz::Expected::kind);
    if (expected != results.expected.end()) run.mismatches = chz::mismatches(run, *expected);
  }
  return {};
}

Result<std::optional<chz::Results>> read_against(const Options& options) {
  if (options.against_path.empty()) return std::nullopt;
  const auto text = chz::read_file(options.against_path);
  if (!text) return propagate(text);
  auto against = chz::parse_results(*text);
  if (!against) return propagate(against, options.against_path);
  return std::move(*against);
}

chz::Settings settings_for(const Options& options, const platform::Platform& platform) {
  chz::Settings settings;
  settings.programs = program_folder();
  settings.gpu = options.gpu;
  settings.guard = options.guard;
  settings.hold = Milliseconds(options.hold_ms);
  settings.seed = options.seed;
  if (options.hold_ms > 0) settings.settle_patience = Milliseconds(20'000);  // a kernel runs on for up to 5 s
  if (platform.gpu == platform::Gpu::Soft) settings.pace = Milliseconds(2);
  return settings;
}

Status keep(const Options& options, const chz::Results& results) {
  return options.json_path.empty() ? Status() : chz::write_file(options.json_path, chz::to_json(results));
}

/// Shows what the command line wants to see of it.
Status show(const Options& options, const chz::Results& results, const chz::Summary& summary,
            const std::optional<chz::Results>& against) {
  fmt::print("{}", chz::render(summary));
  std::optional<chz::Comparison> comparison;
  if (against) comparison = chz::compare(*against, results);
  if (comparison) fmt::print("\n{}", chz::render(*comparison));
  if (options.html_path.empty()) return {};
  return chz::write_file(options.html_path, chz::to_html(results, comparison ? &*comparison : nullptr));
}

/// The line about how it ended, and the exit status.
int conclude(chz::Ending ending, const Options& options, const chz::Results& results,
             const chz::Summary& summary) {
  if (!results.finished) {
    const char* why = ending == chz::Ending::Interrupted ? "interrupted" : "the time is up";
    const std::string on = options.json_path.empty() ? "" : "; the same command with --resume goes on";
    fmt::print(stderr, "firebreak-lab: unfinished ({}), {} runs are there{}\n", why, results.runs.size(), on);
  }
  if (!results.finished) return unfinished_status;
  return std::ranges::all_of(summary.kinds, &chz::KindSummary::as_expected) ? 0 : 1;
}

int run(const Options& options) {
  if (!options.html_path.empty()) {
    if (const Status page = chz::page_is_there(); !page) return complain(to_string(page.error()));
  }
  // Files that are made from now on are also taken away when somebody interrupts us: the runs listen to
  // these.
  if (auto held = os::hold_signals({SIGINT, SIGTERM, SIGHUP}); !held)
    return complain(to_string(held.error()));
  const auto platform = gpu::choose_either({}, options.gpu);
  if (!platform) return complain(to_string(platform.error()));
  platform::hear_promptly();
  auto results = empty_results(options, *platform);
  if (!results) return complain(to_string(results.error()));
  if (options.resume) {
    if (Status taken = take_up(options, *results); !taken) return complain(to_string(taken.error()));
  }
  const auto against = read_against(options);
  if (!against) return complain(to_string(against.error()));
  ProgressLine line;
  chz::Campaign campaign;
  campaign.settings = settings_for(options, *platform);
  if (options.budget_s > 0)
    campaign.budget =
        std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(options.budget_s));
  campaign.on_progress = [&line](const std::string& text) { line.show(text); };
  campaign.on_run = [&](const chz::Results& so_far) { return keep(options, so_far); };
  const auto ending = chz::carry_out(campaign, SystemClock(), *results);
  line.clear();
  if (!ending) return complain(to_string(ending.error()));
  const chz::Summary summary = chz::summarize(*results);
  if (Status kept = keep(options, *results); !kept) return complain(to_string(kept.error()));
  if (Status shown = show(options, *results, summary, *against); !shown)
    return complain(to_string(shown.error()));
  return conclude(*ending, options, *results, summary);
}

}  // namespace

void add_characterize(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "characterize",
      "Raises every kind of fault in fresh MPS domains and tells who dies of it, who says so and when");
  command->footer(
      "Exit status: 0 all as expected, 1 something was not, 2 unfinished, "
      "whatever there is so far.");
  command->add_option("--gpu", options->gpu, "auto, real or soft (default: FIREBREAK_GPU, else auto)")
      ->check(CLI::IsMember({"auto", "real", "soft"}));
  command->add_option("--kinds", options->kinds, "Kinds and classes of faults, by commas (default: all)")
      ->delimiter(',');
  command->add_option("--repeat", options->repeat, "How often each kind is raised")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  command->add_option("--seed", options->seed, "Of the order of the runs, and of the moments with --hold-ms")
      ->capture_default_str();
  CLI::Option* json = command->add_option("--json", options->json_path,
                                          "Write all results to this file, anew after each run");
  command->add_option("--html", options->html_path, "Write a page with tables and charts to this file");
  command->add_option("--against", options->against_path,
                      "Say what changed since the results in this file, made by --json before");
  command->add_flag("--guard", options->guard,
                    "Run the faulter under the guard: what is contained, and what is not");
  command
      ->add_option("--hold-ms", options->hold_ms,
                   "Hold the descriptors of a faulter that ends for so long, and end it at random moments")
      ->check(CLI::Range(1, 60'000))
      ->excludes("--guard");
  command->add_flag("--resume", options->resume, "Go on with the runs that this file holds")->needs(json);
  command->add_option("--budget-s", options->budget_s, "Stop after that many seconds")
      ->check(CLI::PositiveNumber);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace firebreak::commands
