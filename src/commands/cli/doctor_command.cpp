// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "agent/faults/watch/nvml_library.h"
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

/// In other modes than DEFAULT a GPU serves one MPS domain at most.
std::vector<std::string> exclusive_gpus(const Result<platform::Platform>& platform) {
  std::vector<std::string> uuids;
  if (!platform) return uuids;
  for (const watch::NvmlGpu& gpu : watch::gpus_listed_by_nvml(platform->nvml_library)) {
    if (gpu.compute_mode != abi::NVML_COMPUTEMODE_DEFAULT) uuids.push_back(gpu.uuid);
  }
  return uuids;
}

/// Whether an agent can serve on the GPU that was chosen.
bool is_usable(const std::vector<Finding>& findings, platform::Gpu gpu) {
  const Use use = gpu == platform::Gpu::Soft ? Use::SoftwareGpu : Use::Sharing;
  const auto verdicts = verdicts_of(findings);
  const auto its = std::ranges::find(verdicts, use, &UseVerdict::use);
  return its->answer != Availability::Missing;
}

int run(bool as_json) {
  os::RealKernel kernel;
  ExamineOptions options = usual_places(program_folder() + "/../lib/softgpu/libcuda.so.1");
  options.has_page = FIREBREAK_HAS_PAGE == 1;
  options.probe_result = result_of;
  options.exclusive_gpus = exclusive_gpus(platform::choose());
  const std::vector<Finding> findings = examine(kernel, options);
  const bool usable = is_usable(findings, *platform::wanted_gpu());
  fmt::print("{}", as_json ? to_json(findings, usable) + "\n" : to_text(findings));
  return usable ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("doctor", "Says what this machine offers, and what is missing for what");
  auto as_json = std::make_shared<bool>(false);
  command->footer(
      "Ends with what can be done here, and with what cannot and why. Its status is 0 where an agent can "
      "serve on "
      "the GPU that FIREBREAK_GPU names, else 1.");
  command->add_flag("--json", *as_json, "One JSON document, for programs");
  command->callback([as_json, &action] { action = [as_json] { return run(*as_json); }; });
}

}  // namespace firebreak::cli
