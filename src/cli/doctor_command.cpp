// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "guard/trial.h"
#include "os/real_kernel.h"
#include "platform/platform.h"

namespace firebreak::cli {

namespace {

guard::Verdict verdict_on_guard() {
  const auto platform = platform::choose();
  if (!platform) return {guard::Verdict::Word::Untested, platform.error().message};
  return guard::known_or_tried_verdict(*platform->kernel, platform::guard_trial(*platform));
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
      options.guard_verdict = verdict_on_guard;
      fmt::print("{}", to_text(examine(kernel, options)));
      return 0;
    };
  });
}

}  // namespace firebreak::cli
