// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "commands/cli/nearest.h"
#include "ground/base/log.h"
#include "ground/os/self.h"

namespace firebreak::cli {
namespace {

/// "firebreak", as the file is called.
std::string program_name() {
  const auto program = os::executable_path();
  return program ? program->substr(program->rfind('/') + 1) : "firebreak";
}

bool is_of_run(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return !chosen.empty() && chosen.front()->get_name() == "run";
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* each : command.get_options()) {
    for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : each->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string with_nearest(const std::string& message, const std::string& nearest, const std::string& help) {
  return nearest.empty() ? fmt::format("{} (`{} --help` lists them)", message, help)
                         : fmt::format("{} (did you mean {}?)", message, nearest);
}

/// The first word that nobody knows, and the one that may have been meant; empty: all are known.
std::optional<std::string> what_is_wrong(const CLI::App& app, const std::vector<std::string>& words) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string called = program_name() + (chosen.empty() ? "" : " " + command.get_name());
  const std::vector<std::string> options = names_of_options(command);
  auto word = words.begin();
  if (!chosen.empty()) word = std::ranges::find(words, command.get_name());
  for (; word != words.end() && *word != "--"; ++word) {
    const std::string name = word->substr(0, word->find('='));
    const bool is_number = name.size() > 1 && std::isdigit(static_cast<unsigned char>(name[1])) != 0;
    const bool is_option = name.starts_with('-') && name.size() > 1 && !is_number;
    if (is_option && std::ranges::count(options, name) == 0)
      return with_nearest(fmt::format("`{}` has no option {}", called, name), nearest(name, options), called);
    const auto commands = names_of_commands(app);
    if (!is_option && chosen.empty() && !commands.empty())
      return with_nearest(fmt::format("there is no command '{}'", name), nearest(name, commands), called);
  }
  return std::nullopt;
}

}  // namespace

int run_program(CLI::App& app, const Action& action, int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // it was asked for help
    (void)complain(what_is_wrong(app, words).value_or(error.what()));
    return is_of_run(app) ? own_failure_status : usage_status;
  }
  set_up_logging(program_name());
  try {
    return action();
  } catch (const std::exception& unexpected) {
    return complain(unexpected.what());
  }
}

int complain(const std::string& message) {
  fmt::print(stderr, "{}: {}\n", program_name(), message);
  return 1;
}

std::string program_folder() {
  const auto program = os::executable_path();
  return program ? program->substr(0, program->rfind('/')) : std::string();
}

}  // namespace firebreak::cli
