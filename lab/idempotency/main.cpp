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

}  // namespace

int main(int argument_count, char** arguments) {
  CLI::App app{"Checks what Firebreak says of launches: may they run again after they were torn?"};
  idempotency::RandomLaunchOptions options;
  options.seed = std::random_device{}();
  std::vector<std::string> files;
  idempotency::RegionOptions regions;
  regions.modules = 0;
  idempotency::RedoOptions redo;
  redo.faults = 0;
  app.add_option("--kernels", options.kernel_count, "Random kernels to check")->capture_default_str();
  app.add_option("--launches", options.launches_per_kernel, "Launches of each")->capture_default_str();
  app.add_option("--seed", options.seed, "To have the same again");
  std::uint64_t begin_kernel = 0;
  std::map<std::string, idempotency::AdversarialKind> kinds;
  for (const idempotency::AdversarialKind kind : idempotency::adversarial_kinds)
    kinds[idempotency::to_string(kind)] = kind;
  app.add_flag("--adversarial", options.is_adversarial,
               "Kernels that are likely to be taken wrongly, in turns of each kind");
  app.add_option("--kind", options.kind, "With --adversarial: of that kind alone")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--begin-kernel", begin_kernel,
                 "With --adversarial --replay: kernels before that one are left out");
  app.add_option("--problems", options.most_problems, "Ends after so many kernels with a problem")
      ->capture_default_str();
  app.add_option("--regions", regions.modules, "Instead: sequences of the kernels of so many random modules");
  app.add_option("--sequences", regions.sequences, "Sequences of each module")->capture_default_str();
  app.add_flag("--mutants", regions.with_mutants, "One kernel of each sequence is changed");
  app.add_option("--faults", redo.faults, "Instead: so many faults in such sequences, noted in a ring");
  app.add_option("--ptx", files, "Instead: what can be said of the kernels of these PTX files")
      ->check(CLI::ExistingFile);
  std::uint64_t every = 0;
  app.add_option("--run", every, "With --ptx: one of so many kernels is launched under the oracle");
  std::string recorded;
  app.add_option("--recorded", recorded,
                 "Instead: the launches that a program recorded there (FIREBREAK_RECORD_LAUNCHES), as JSON")
      ->check(CLI::ExistingDirectory);
  bool replays = false;
  idempotency::ReplayOptions replay;
  idempotency::ReplayPart part;
  app.add_flag(
      "--replay", replays,
      "With --recorded or --adversarial: on a GPU, with made-up data, traced, torn and done again; lines "
      "of JSON");
  app.add_option("--part", part.part, "With --replay: this part of the kernels, from 0")
      ->capture_default_str();
  app.add_option("--parts", part.parts, "of so many")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--begin", part.begin, "With --replay: launches before that one are left out");
  app.add_option("--first-data", part.first_data,
                 "With --begin: that launch's first data, 0 numbers, 1 small ones, 2 zeroes")
      ->check(CLI::Range(0, 2));
  app.add_option("--records", replay.most_records, "With --replay: accesses that are recorded of a launch")
      ->capture_default_str();
  CLI11_PARSE(app, argument_count, arguments);
  if (!files.empty() && every != 0) {
    const auto counts = idempotency::check_corpus({files, every, options.launches_per_kernel, options.seed});
    fmt::print("{}", to_text(counts));
    return counts.problems.empty() ? 0 : 1;
  }
  if (!files.empty()) {
    fmt::print("{}", to_text(idempotency::survey(files)));
    return 0;
  }
  if (replays && options.is_adversarial)
    return report(
        idempotency::replay_adversarial({options.kernel_count, options.seed, begin_kernel}, replay));
  if (replays) return report(idempotency::replay_recorded(recorded, replay, part));
  if (!recorded.empty()) return decide(recorded);
  fmt::print("seed {}\n", options.seed);
  if (redo.faults > 0) {
    redo.seed = options.seed;
    const idempotency::RedoCounts counts = idempotency::check_redo(redo);
    fmt::print("{}", to_text(counts));
    return counts.problem.empty() ? 0 : 1;
  }
  if (regions.modules > 0) {
    regions.seed = options.seed;
    const idempotency::RegionCounts counts = idempotency::check_random_regions(regions);
    fmt::print("{}", to_text(counts));
    return counts.problem.empty() ? 0 : 1;
  }
  const idempotency::RandomLaunchCounts counts = idempotency::check_random_launches(options);
  fmt::print("{}", to_text(counts));
  return counts.problems.empty() ? 0 : 1;
}
