// SPDX-License-Identifier: Apache-2.0
#include "ground/pages/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

namespace firebreak::pages {
namespace {

using Options = std::vector<const CLI::Option*>;

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> shown;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!each->get_group().empty()) shown.push_back(each);
  }
  return shown;
}

Options options_of(const CLI::App& app, bool positional) {
  Options shown;
  for (const CLI::Option* each : app.get_options()) {
    if (!each->get_group().empty() && each->get_positional() == positional) shown.push_back(each);
  }
  return shown;
}

bool is_flag(const CLI::Option& option) { return option.get_expected_min() == 0; }

/// "end" and "report" of "TEXT:{end,report}"; none: it takes any word.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> words;
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos || type.back() != '}') return words;
  std::string word;
  for (const char letter : type.substr(begin + 2)) {
    if (letter != ',' && letter != '}') {
      word += letter;
      continue;
    }
    words.push_back(std::exchange(word, {}));
  }
  return words;
}

/// "TEXT", or its choices.
std::string value_of(const CLI::Option& option) {
  const auto choices = choices_of(option);
  if (!choices.empty()) return fmt::format("{}", fmt::join(choices, "|"));
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

/// "1 - 100" of "INT:INT in [1 - 100]"; empty: none is told.
std::string range_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(" in [");
  const std::size_t end = type.find(']', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return type.substr(begin + 5, end - begin - 5);
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& each : option.get_snames()) names.push_back("-" + each);
  for (const std::string& each : option.get_lnames()) names.push_back("--" + each);
  return names;
}

// --- the manual

/// Escapes what roff would take for its own.
std::string roff(std::string_view text) {
  std::string escaped;
  bool begins_line = true;
  for (const char letter : text) {
    if (begins_line && (letter == '.' || letter == '\'')) escaped += "\\&";
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else {
      escaped += letter;
    }
    begins_line = letter == '\n';
  }
  return escaped;
}

std::string in_capitals(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::string described(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!text.empty() && text.back() != '.') text += '.';
  const std::string range = range_of(option);
  if (!range.empty()) text += fmt::format(" In {}.", range);
  if (!is_flag(option) && !option.get_default_str().empty())
    text += fmt::format(" Default: {}.", option.get_default_str());
  if (!option.get_envname().empty()) text += fmt::format(" Environment: {}.", option.get_envname());
  return text;
}

std::string entry(const CLI::Option& option) {
  std::string head;
  for (const std::string& name : names_of(option))
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", roff(name));
  if (option.get_positional()) head = fmt::format("\\fI{}\\fR", roff(option.get_name(true)));
  if (!option.get_positional() && !is_flag(option))
    head += fmt::format(" \\fI{}\\fR", roff(value_of(option)));
  return fmt::format(".TP\n{}\n{}\n", head, roff(described(option)));
}

std::string entries(const CLI::App& app) {
  std::string text;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* each : options_of(app, positional)) text += entry(*each);
  }
  return text;
}

/// "[OPTIONS] NAME", as roff.
std::string arguments_of(const CLI::App& app) {
  std::string text = " [\\fIOPTIONS\\fR]";
  for (const CLI::Option* each : options_of(app, true)) {
    const std::string name = fmt::format("\\fI{}\\fR", roff(each->get_name(true)));
    text += each->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  return text;
}

std::string command_section(const CLI::App& command, const std::string& program) {
  std::string text = fmt::format(".SS \"{} {}{}\"\n{}\n", program, command.get_name(), arguments_of(command),
                                 roff(command.get_description()));
  if (!command.get_footer().empty()) text += fmt::format(".PP\n{}\n", roff(command.get_footer()));
  return text + entries(command);
}

// --- the completion

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::App* each : commands_of(app)) words += each->get_name() + " ";
  for (const CLI::Option* each : options_of(app, false)) {
    for (const std::string& name : names_of(*each)) words += name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

/// Lists what may follow an option: a row for each that has choices, and one for those that take any word.
std::string value_rows(const CLI::App& app, const std::string& command) {
  std::string rows, free;
  for (const CLI::Option* each : options_of(app, false)) {
    if (is_flag(*each)) continue;
    std::string patterns;
    for (const std::string& name : names_of(*each))
      patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", command, name);
    const auto choices = choices_of(*each);
    if (choices.empty()) {
      free += (free.empty() ? "" : "|") + patterns;
    } else {
      rows += fmt::format("    {}) words='{}' ;;\n", patterns, fmt::join(choices, " "));
    }
  }
  if (!free.empty()) rows += fmt::format("    {}) return ;;\n", free);
  return rows;
}

/// For commands that take a listed value: it comes before options, unless one of those has been begun. A
/// program that says nothing leaves the options.
std::string listing(const CLI::App& app, const ListedValues& listed) {
  std::string names;
  for (const CLI::App* command : commands_of(app)) {
    for (const CLI::Option* each : options_of(*command, true)) {
      if (!listed.type.empty() && each->get_type_name() == listed.type)
        names += (names.empty() ? "" : "|") + command->get_name();
    }
  }
  if (names.empty()) return {};
  return fmt::format(
      "  if [[ -z $words && $current != -* && $command == @({0}) ]]; then\n"
      "    words=$(\"${{COMP_WORDS[0]}}\" {1} \"${{asked[@]}}\" 2>/dev/null || :)\n  fi\n",
      names, listed.command);
}

}  // namespace

std::string manual_page(const CLI::App& app, const Subject& subject) {
  std::string text = fmt::format(".TH {} {} \"\" \"Firebreak {}\"\n", in_capitals(subject.name),
                                 subject.section, roff(subject.version.substr(0, subject.version.find(' '))));
  std::string in_one_line = app.get_description();
  if (!in_one_line.empty() && in_one_line.back() == '.') in_one_line.pop_back();
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(subject.name), roff(in_one_line));
  const auto commands = commands_of(app);
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR{}{}\n", roff(subject.name), arguments_of(app),
                      commands.empty() ? "" : " \\fICOMMAND\\fR");
  if (!app.get_footer().empty()) text += fmt::format(".SH DESCRIPTION\n{}\n", roff(app.get_footer()));
  text += ".SH OPTIONS\n" + entries(app);
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* each : commands) text += command_section(*each, subject.name);
  if (!subject.examples.empty()) text += ".SH EXAMPLES\n";
  for (const Example& each : subject.examples)
    text +=
        fmt::format(".PP\n{}:\n.PP\n.RS 4\n.nf\n\\fB{}\\fR\n.fi\n.RE\n", roff(each.does), roff(each.command));
  return text + ".SH SEE ALSO\n/usr/share/doc/firebreak\n";
}

std::string completion(const CLI::App& app, const Subject& subject) {
  std::string values = value_rows(app, "");
  std::string words = fmt::format("    '') words='{}' ;;\n", words_of(app));
  std::string names;
  for (const CLI::App* each : commands_of(app)) {
    values += value_rows(*each, each->get_name());
    words += fmt::format("    {}) words='{}' ;;\n", each->get_name(), words_of(*each));
    names += (names.empty() ? "" : "|") + each->get_name();
  }
  std::string function = "_" + subject.name;
  for (char& letter : function) letter = letter == '-' ? '_' : letter;
  std::string text =
      fmt::format("# bash completion for {}, made of its options\n{}() {{\n", subject.name, function);
  text +=
      "  local current=${COMP_WORDS[COMP_CWORD]} command='' words='' at asked=()\n"
      "  for ((at = 1; at < COMP_CWORD; at++)); do\n"
      "    case ${COMP_WORDS[at]} in\n"
      "      --) return ;;\n";
  if (!subject.listed.option.empty())
    text += fmt::format("      {0}) asked=({0} \"${{COMP_WORDS[at + 1]}}\") ;;\n", subject.listed.option);
  if (!names.empty()) text += fmt::format("      {}) command=${{command:-${{COMP_WORDS[at]}}}} ;;\n", names);
  text += "    esac\n  done\n  case \"$command ${COMP_WORDS[COMP_CWORD - 1]}\" in\n" + values + "  esac\n" +
          listing(app, subject.listed) + "  if [[ -z $words ]]; then\n  case $command in\n" + words +
          "  esac\n  fi\n";
  text += "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n";
  return text + fmt::format("complete -o default -F {} {}\n", function, subject.name);
}

bool print_if_asked(const CLI::App& app, const Subject& subject, int argument_count, char** arguments) {
  const std::string_view asked = argument_count == 2 ? arguments[1] : "";
  const bool is_manual = asked == "--print-manual-page";
  if (!is_manual && asked != "--print-completion") return false;
  fmt::print("{}", is_manual ? manual_page(app, subject) : completion(app, subject));
  return true;
}

}  // namespace firebreak::pages
