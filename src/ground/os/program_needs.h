// SPDX-License-Identifier: Apache-2.0
/// What a program's file says of the libraries that it is loaded with.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace firebreak::os {

struct ProgramNeeds {
  std::string dynamic_linker;          ///< empty: none, it comes without libraries
  std::vector<std::string> libraries;  ///< by their names, without those that these need
};

/// Of an ELF program of 64 bits, or of the one that a script's first line names. Empty: it is none, or cannot
/// be read.
std::optional<ProgramNeeds> program_needs(const std::string& file);

/// What Linux starts in its place: the program that a script's first line names, or the dynamic linker.
/// Empty: nothing.
std::string starter_of(const std::string& file);

}  // namespace firebreak::os
