// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "os/real_kernel.h"

namespace firebreak::cli {

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("doctor", "Says what this machine offers, and what is missing for what");
  command->callback([&action] {
    action = [] {
      os::RealKernel kernel;
      const std::string software_gpu = program_folder() + "/../lib/softgpu/libcuda.so.1";
      fmt::print("{}", to_text(examine(kernel, usual_places(software_gpu))));
      return 0;
    };
  });
}

}  // namespace firebreak::cli
