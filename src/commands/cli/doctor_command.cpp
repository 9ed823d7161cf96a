// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "commands/cli/commands.h"
#include "commands/cli/doctor.h"
#include "ground/os/real_kernel.h"
#include "ground/platform/platform.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::cli {

namespace {

/// Spares are tried by an agent alone: that raises a fault, in MPS domains of its own.
guard::ProbeResult result_of(guard::Probed what) {
  const auto platform = platform::choose();
  if (!platform) return {guard::ProbeResult::Answer::Untested, platform.error().message};
  if (what == guard::Probed::Spares) return guard::known_probe_result(*platform->kernel, what);
  return guard::known_or_new_probe_result(*platform->kernel, what, platform::probe(*platform, "guard-probe"));
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("doctor", "Says what this machine offers, and what is missing for what");
  command->callback([&action] {
    action = [] {
      os::RealKernel kernel;
      const std::string software_gpu = program_folder() + "/../lib/softgpu/libcuda.so.1";
      ExamineOptions options = usual_places(software_gpu);
      options.has_page = FIREBREAK_HAS_PAGE == 1;
      options.probe_result = result_of;
      fmt::print("{}", to_text(examine(kernel, options)));
      return 0;
    };
  });
}

}  // namespace firebreak::cli
