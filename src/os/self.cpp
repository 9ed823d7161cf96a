// SPDX-License-Identifier: Apache-2.0
#include "os/self.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "os/errno_error.h"

namespace firebreak::os {
namespace {

bool executable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

pid_t own_pid() { return ::getpid(); }

Result<std::string> executable_path() {
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length < 0) return fail_errno("read /proc/self/exe", errno);
  path.resize(static_cast<std::size_t>(length));
  return path;
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

EnvironmentScope::EnvironmentScope(const Variables& variables) {
  for (const auto& [name, value] : variables) {
    before_.emplace_back(name, environment_variable(name));
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

EnvironmentScope::~EnvironmentScope() {
  // Backwards: a name may have been given twice.
  for (auto variable = before_.rbegin(); variable != before_.rend(); ++variable) {
    const auto& [name, value] = *variable;
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
}

std::optional<std::string> find_program(const std::string& program) {
  if (program.empty()) return std::nullopt;
  if (program.find('/') != std::string::npos) {
    return executable_file(program) ? std::optional(program) : std::nullopt;
  }
  const std::string path = environment_variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (executable_file(candidate)) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

Status become_program(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return fail_errno("start " + command.front(), errno);
}

void forget_signal_handler(int signal) { ::signal(signal, SIG_DFL); }

bool is_terminal(int number) { return ::isatty(number) == 1; }

}  // namespace firebreak::os
