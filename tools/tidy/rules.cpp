// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {

std::span<const Rule> all_rules() {
  static constexpr std::array<Rule, 9> rules{{
      {"include-direction", "a folder includes only folders it may know (folder_map.cpp)",
       check_include_direction},
      {"function-length", "no function is longer than 70 lines", check_function_length},
      {"file-length", "no file is longer than 900 lines", check_file_length},
      {"os-calls", "only src/os and softgpu call the operating system", check_os_calls},
      {"unlisted-test", "every *_test file is named in a CMakeLists.txt", check_unlisted_tests},
      {"licence-line", "the first line is the SPDX line", check_licence_line},
      {"library-exit", "libraries return errors, they never end the process", check_library_exit},
      {"using-namespace", "no `using namespace` in a header", check_using_namespace},
      {"open-end", "no notes about work left to do", check_open_ends},
  }};
  return rules;
}

}  // namespace firebreak::tidy
