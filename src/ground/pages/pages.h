// SPDX-License-Identifier: Apache-2.0
/// A program's manual page and its shell completion, both made of the tables that it reads its command line
/// by.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace firebreak::pages {

/// Facts that the tables do not say.
struct Subject {
  std::string name;     ///< name of the program
  int section = 1;      ///< section of the manual
  std::string version;  ///< "0.6.0", and what follows a blank is left out
};

/// Makes the page for man(1).
std::string manual_page(const CLI::App& app, const Subject& subject);

/// Makes the completion for bash-completion: commands, options, and the words that an option takes where
/// those are known.
std::string completion(const CLI::App& app, const Subject& subject);

/// Prints what a build asks for, by --print-manual-page or --print-completion alone. False: it asked for
/// neither.
bool print_if_asked(const CLI::App& app, const Subject& subject, int argument_count, char** arguments);

}  // namespace firebreak::pages
