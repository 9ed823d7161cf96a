// SPDX-License-Identifier: Apache-2.0
/// What a process may ask about itself.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace firebreak::os {

pid_t own_pid();

/// The absolute path of the running program.
Result<std::string> executable_path();

/// The value of an environment variable, or empty. Not safe beside setenv() in another thread.
std::optional<std::string> environment_variable(const std::string& name);

/// Variables of our own environment for as long as the object lives; then they are as they were before. For
/// libraries that read them in this process. Not safe while another thread reads or sets any.
class EnvironmentScope {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  explicit EnvironmentScope(const Variables& variables);
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;
  ~EnvironmentScope();

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

/// Where PATH finds an executable `program`; a name with a slash is only checked. Empty when there is none.
std::optional<std::string> find_program(const std::string& program);

/// This process becomes another program (looked up in PATH); returns only where that failed.
Status become_program(const std::vector<std::string>& command);

/// exit(): also runs what libraries left to be done at the end. For faults on purpose alone.
[[noreturn]] void leave_process(int status);

/// From now on the signal does what Linux does of itself, whoever in this process had other plans. For faults
/// on purpose alone.
void forget_signal_handler(int signal);

/// Whether somebody looks at what is written to descriptor `number`.
bool is_terminal(int number);

}  // namespace firebreak::os
