// SPDX-License-Identifier: Apache-2.0
/// A rule, and the list of them. A new rule is one file, one line in rules.cpp and one test.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/tidy/source_tree.h"

namespace firebreak::tidy {

/// One violation. `line` counts from 1.
struct Finding {
  std::string path;
  int line = 0;
  std::string rule;
  std::string message;
};

/// A rule: its name as it stands in front of a message and in exceptions.txt, and the check itself.
struct Rule {
  std::string_view name;
  std::string_view what;
  std::vector<Finding> (*check)(const SourceTree& tree);
};

std::vector<Finding> check_include_direction(const SourceTree& tree);
std::vector<Finding> check_unused_links(const SourceTree& tree);
std::vector<Finding> check_link_direction(const SourceTree& tree);
std::vector<Finding> check_wing_direction(const SourceTree& tree);
std::vector<Finding> check_folder_table(const SourceTree& tree);
std::vector<Finding> check_function_length(const SourceTree& tree);
std::vector<Finding> check_file_length(const SourceTree& tree);
std::vector<Finding> check_os_calls(const SourceTree& tree);
std::vector<Finding> check_unlisted_tests(const SourceTree& tree);
std::vector<Finding> check_licence_line(const SourceTree& tree);
std::vector<Finding> check_library_exit(const SourceTree& tree);
std::vector<Finding> check_using_namespace(const SourceTree& tree);
std::vector<Finding> check_open_ends(const SourceTree& tree);
std::vector<Finding> check_line_length(const SourceTree& tree);
std::vector<Finding> check_document_words(const SourceTree& tree);
std::vector<Finding> check_references(const SourceTree& tree);
std::vector<Finding> check_type_names(const SourceTree& tree);
std::vector<Finding> check_comment_subjects(const SourceTree& tree);
std::vector<Finding> check_kernel_layers(const SourceTree& tree);

/// Every rule, in the order in which they run.
std::span<const Rule> all_rules();

}  // namespace firebreak::tidy
