// SPDX-License-Identifier: Apache-2.0
/// `firebreak-lab characterize` on the software GPU, as a user runs it.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {

struct Characterization : testing::Test {
  Sandbox sandbox;
  std::string json_path = sandbox.file("results.json");

  /// The software GPU runs at half its speed: what comes first on it also comes first on a busy machine.
  os::ProgramResult characterize(std::vector<std::string> arguments) {
    return sandbox.run("firebreak-lab", with_command(std::move(arguments)), slow);
  }
  pid_t start(std::vector<std::string> arguments) {
    return sandbox.start("firebreak-lab", with_command(std::move(arguments)), slow);
  }

  /// All runs are there. Whether each went as expected is another matter: a machine that is very busy may
  /// read first what came second.
  static bool is_finished(const os::ProgramResult& result) {
    return result.status.signal == 0 && (result.status.exit_code == 0 || result.status.exit_code == 1) &&
           result.output.find("kinds as expected") != std::string::npos;
  }

  nlohmann::json results() const;
  void write_results(const nlohmann::json& results) const;

 private:
  static std::vector<std::string> with_command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "characterize");
    return arguments;
  }
  Sandbox::Environment slow = {{"FIREBREAK_SOFTGPU_SPEED", "0.5"}};
};

}  // namespace firebreak::tests
