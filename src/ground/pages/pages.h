// SPDX-License-Identifier: Apache-2.0
/// A program's manual page and its shell completion, both made of the tables that it reads its command line
/// by.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace firebreak::pages {

struct Example {
  std::string does;  ///< "Ends a tenant"
  std::string command;
};

/// Values that the program itself lists, such as names that change.
struct ListedValues {
  std::string type;     ///< type name of the arguments that take one of them; empty: there are none
  std::string command;  ///< arguments with which the program prints them, one a line
  std::string option;   ///< an option of the command line that goes with the question: where it is asked
};

/// Facts that the tables do not say.
struct Subject {
  std::string name;     ///< name of the program
  int section = 1;      ///< section of the manual
  std::string version;  ///< "0.6.0", and what follows a blank is left out
  std::vector<Example> examples = {};
  ListedValues listed = {};
};

/// Makes the page for man(1).
std::string manual_page(const CLI::App& app, const Subject& subject);

/// Makes the completion for bash-completion: commands, options, the words that an option takes where those
/// are known, and what the program lists.
std::string completion(const CLI::App& app, const Subject& subject);

/// Prints what a build asks for, by --print-manual-page or --print-completion alone. False: it asked for
/// neither.
bool print_if_asked(const CLI::App& app, const Subject& subject, int argument_count, char** arguments);

}  // namespace firebreak::pages
