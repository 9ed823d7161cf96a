// SPDX-License-Identifier: Apache-2.0
/// What programs with subcommands have in common.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace firebreak::cli {

/// The status of `firebreak run` where it fails itself, as that of env(1) and timeout(1).
inline constexpr int own_failure_status = 125;

/// What FIREBREAK_GPU may say: a word that is none is told before anything is done.
enum class GpuWords {
  RealOrSoft,
  Either,  ///< the command that chooses a GPU looks itself, and takes `auto`, too
};

/// What the chosen subcommand does once the command line is parsed; returns the exit status.
using Action = std::function<int()>;

/// Parses the command line, lets `action`, which a subcommand of `app` has set, do its work, and tells of
/// what goes wrong. Returns the exit status.
int run_program(CLI::App& app, const Action& action, int argument_count, char** arguments,
                GpuWords words = GpuWords::RealOrSoft);

/// Prints "PROGRAM: MESSAGE (HINT)" on standard error; returns 1.
int complain(const std::string& message);

/// The folder that holds the running program; empty where that cannot be known.
std::string program_folder();

}  // namespace firebreak::cli
