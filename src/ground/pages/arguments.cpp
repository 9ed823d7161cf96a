// SPDX-License-Identifier: Apache-2.0
#include "ground/pages/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <vector>

#include "ground/pages/nearest.h"

namespace firebreak::pages {
namespace {

std::vector<std::string> names_of_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

struct OptionNames {
  std::vector<std::string> all;
  std::vector<std::string> shown;  ///< names that the help has
};

OptionNames names_of_options(const CLI::App& command) {
  OptionNames names;
  for (const CLI::Option* each : command.get_options()) {
    std::vector<std::string> its;
    for (const std::string& name : each->get_lnames()) its.push_back("--" + name);
    for (const std::string& name : each->get_snames()) its.push_back("-" + name);
    names.all.insert(names.all.end(), its.begin(), its.end());
    if (!each->get_group().empty()) names.shown.insert(names.shown.end(), its.begin(), its.end());
  }
  return names;
}

std::string with_nearest(const std::string& message, const std::string& nearest, const std::string& help) {
  return nearest.empty() ? fmt::format("{} (`{} --help` lists them)", message, help)
                         : fmt::format("{} (did you mean {}?)", message, nearest);
}

/// The first word that nobody knows, and the one that may have been meant; empty: all are known.
std::optional<std::string> what_is_wrong(const CLI::App& app, const std::string& program,
                                         const std::vector<std::string>& words) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string called = program + (chosen.empty() ? "" : " " + command.get_name());
  const OptionNames options = names_of_options(command);
  auto word = words.begin();
  if (!chosen.empty()) word = std::ranges::find(words, command.get_name());
  for (; word != words.end() && *word != "--"; ++word) {
    const std::string name = word->substr(0, word->find('='));
    const bool is_number = name.size() > 1 && std::isdigit(static_cast<unsigned char>(name[1])) != 0;
    const bool is_option = name.starts_with('-') && name.size() > 1 && !is_number;
    if (is_option && std::ranges::count(options.all, name) == 0)
      return with_nearest(fmt::format("`{}` has no option {}", called, name), nearest(name, options.shown),
                          called);
    const auto commands = names_of_commands(app);
    if (!is_option && chosen.empty() && !commands.empty())
      return with_nearest(fmt::format("there is no command '{}'", name), nearest(name, commands), called);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> read_arguments(CLI::App& app, const std::string& program, int argument_count,
                                  char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // it was asked for help
    fmt::print(stderr, "{}: {}\n", program, what_is_wrong(app, program, words).value_or(error.what()));
    return usage_status;
  }
  return std::nullopt;
}

}  // namespace firebreak::pages
