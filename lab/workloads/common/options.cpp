// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/options.h"

#include <CLI/CLI.hpp>
#include <map>

namespace firebreak::workloads {

const char* to_string(Size size) { return size == Size::Small ? "small" : "medium"; }

std::variant<Options, ExitStatus> parse_options(const std::string& description, int argument_count,
                                                const char* const* arguments) {
  Options options;
  CLI::App app(description);
  const std::map<std::string, Size> sizes = {{"small", Size::Small}, {"medium", Size::Medium}};
  app.add_option("--size", options.size, "small (software GPU) or medium (real GPU)")
      ->transform(CLI::CheckedTransformer(sizes));
  app.add_option("--steps", options.steps, "Number of steps; default: what the size suggests")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}));
  app.add_option("--seed", options.seed, "Everything random comes from it; default 1");
  app.add_option("--output", options.output, "File for the result");
  app.add_option("--pace-ms", options.pace_ms, "Minimum duration of a step, in milliseconds; default 0")
      ->check(CLI::Range(0u, 60000u));
  app.add_option("--slow-until", options.slow_until,
                 "Keep to --pace-ms until this file is there, and do not begin the last step before");
  app.add_option("--standby-sms", options.standby_sms,
                 "A standby waits in a context with so many SMs, which takes little memory; 0: a full one")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1024u));
  app.add_flag("--standalone", options.standalone, "Join no agent: plain device memory");
  app.add_flag("--progress", options.progress,
               "Print a line for each step that is done: step N CLOCK_MONOTONIC_NS; and what else happens: "
               "promoted NS, "
               "resumed NS (its first kernel is done), moved NS (into a full context)");
  app.add_option(
         "--more-memory", options.more_memory,
         "So many further allocations of 2 MiB in the vault, each with a word of its own that whoever "
         "finishes looks for")
      ->check(CLI::Range(0u, 1019u));
  app.add_option("--fork-children", options.children,
                 "So many children by fork, which do nothing but keep open what this process had: as a data "
                 "loader's workers do")
      ->check(CLI::Range(0u, 16u));
  app.add_flag("--start-on-input", options.start_on_input,
               "The first step waits for a line on standard input");
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    return ExitStatus{app.exit(error)};
  }
  return options;
}

}  // namespace firebreak::workloads
