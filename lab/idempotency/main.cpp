// SPDX-License-Identifier: Apache-2.0
// firebreak-idempotency: the oracle over as many random launches or sequences as asked for, or what can be
// said of the kernels of PTX files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <random>

#include "idempotency/adversarial_replay.h"
#include "idempotency/corpus.h"
#include "idempotency/corpus_launches.h"
#include "idempotency/random_launches.h"
#include "idempotency/recorded_launches.h"
#include "idempotency/redo_check.h"
#include "idempotency/region_check.h"
#include "idempotency/replay.h"

namespace {

using namespace firebreak;

int report(const Status& done) {
  if (!done) fmt::print(stderr, "{}\n", to_string(done.error()));
  return done ? 0 : 1;
}

int decide(const std::string& recorded) {
  const auto decided = idempotency::decide_recorded(recorded);
  if (decided) fmt::print("{}", to_json(*decided));
  return report(decided ? Status() : propagate(decided));
}

/// Everything that the command line says.
struct CommandLine {
  idempotency::RandomLaunchOptions launches;
  idempotency::RegionOptions regions;
  idempotency::RedoOptions redo;
  idempotency::ReplayOptions replay;
  idempotency::ReplayPart part;
  std::uint64_t begin_kernel = 0;
  std::uint64_t run_every = 0;
  std::vector<std::string> files;
  std::string recorded;
  bool replays = false;
};

void add_options_of_launches(CLI::App& app, CommandLine& line) {
  auto& options = line.launches;
  std::map<std::string, idempotency::AdversarialKind> kinds;
  for (const idempotency::AdversarialKind kind : idempotency::adversarial_kinds)
    kinds[idempotency::to_string(kind)] = kind;
  app.add_option("--kernels", options.kernel_count, "Random kernels to check")->capture_default_str();
  app.add_option("--launches", options.launches_per_kernel, "Launches of each")->capture_default_str();
  app.add_option("--seed", options.seed, "To have the same again");
  app.add_flag("--adversarial", options.is_adversarial,
               "Kernels that are likely to be taken wrongly, in turns of each kind");
  app.add_option("--kind", options.kind, "With --adversarial: of that kind alone")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--begin-kernel", line.begin_kernel,
                 "With --adversarial --replay: kernels before that one are left out");
  app.add_option("--problems", options.most_problems, "Ends after so many kernels with a problem")
      ->capture_default_str();
}

void add_options_of_other_checks(CLI::App& app, CommandLine& line) {
  line.regions.modules = 0;
  line.redo.faults = 0;
  app.add_option("--regions", line.regions.modules,
                 "Instead: sequences of the kernels of so many random modules");
  app.add_option("--sequences", line.regions.sequences, "Sequences of each module")->capture_default_str();
  app.add_flag("--mutants", line.regions.with_mutants, "One kernel of each sequence is changed");
  app.add_option("--faults", line.redo.faults, "Instead: so many faults in such sequences, noted in a ring");
  app.add_option("--ptx", line.files, "Instead: what can be said of the kernels of these PTX files")
      ->check(CLI::ExistingFile);
  app.add_option("--run", line.run_every, "With --ptx: one of so many kernels is launched under the oracle");
  app.add_option("--recorded", line.recorded,
                 "Instead: the launches that a program recorded there (FIREBREAK_RECORD_LAUNCHES), as JSON")
      ->check(CLI::ExistingDirectory);
}

void add_options_of_replay(CLI::App& app, CommandLine& line) {
  app.add_flag(
      "--replay", line.replays,
      "With --recorded or --adversarial: on a GPU, with made-up data, traced, torn and done again; lines "
      "of JSON");
  app.add_option("--part", line.part.part, "With --replay: this part of the kernels, from 0")
      ->capture_default_str();
  app.add_option("--parts", line.part.parts, "of so many")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--begin", line.part.begin, "With --replay: launches before that one are left out");
  app.add_option("--first-data", line.part.first_data,
                 "With --begin: that launch's first data, 0 numbers, 1 small ones, 2 zeroes")
      ->check(CLI::Range(0, 2));
  app.add_option("--records", line.replay.most_records,
                 "With --replay: accesses that are recorded of a launch")
      ->capture_default_str();
}

int check_files(const CommandLine& line) {
  if (line.run_every == 0) {
    fmt::print("{}", to_text(idempotency::survey(line.files)));
    return 0;
  }
  const auto counts = idempotency::check_corpus(
      {line.files, line.run_every, line.launches.launches_per_kernel, line.launches.seed});
  fmt::print("{}", to_text(counts));
  return counts.problems.empty() ? 0 : 1;
}

int replay(const CommandLine& line) {
  const auto& launches = line.launches;
  if (launches.is_adversarial)
    return report(idempotency::replay_adversarial({launches.kernel_count, launches.seed, line.begin_kernel},
                                                  line.replay));
  return report(idempotency::replay_recorded(line.recorded, line.replay, line.part));
}

int check_random(CommandLine& line) {
  const std::uint64_t seed = line.launches.seed;
  fmt::print("seed {}\n", seed);
  if (line.redo.faults > 0) {
    line.redo.seed = seed;
    const idempotency::RedoCounts counts = idempotency::check_redo(line.redo);
    fmt::print("{}", to_text(counts));
    return counts.problem.empty() ? 0 : 1;
  }
  if (line.regions.modules > 0) {
    line.regions.seed = seed;
    const idempotency::RegionCounts counts = idempotency::check_random_regions(line.regions);
    fmt::print("{}", to_text(counts));
    return counts.problem.empty() ? 0 : 1;
  }
  const idempotency::RandomLaunchCounts counts = idempotency::check_random_launches(line.launches);
  fmt::print("{}", to_text(counts));
  return counts.problems.empty() ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  CLI::App app{"Checks what Firebreak says of launches: may they run again after they were torn?"};
  CommandLine line;
  line.launches.seed = std::random_device{}();
  add_options_of_launches(app, line);
  add_options_of_other_checks(app, line);
  add_options_of_replay(app, line);
  CLI11_PARSE(app, argument_count, arguments);
  if (!line.files.empty()) return check_files(line);
  if (line.replays) return replay(line);
  if (!line.recorded.empty()) return decide(line.recorded);
  return check_random(line);
}
