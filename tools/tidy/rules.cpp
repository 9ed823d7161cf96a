// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tools/tidy/rule.h"

namespace firebreak::tidy {

std::span<const Rule> all_rules() {
  static constexpr std::array rules{
      Rule{"include-direction", "a file includes only what its target links", check_include_direction},
      Rule{"unused-link", "a target includes something of each that it links", check_unused_links},
      Rule{"link-direction", "no folder knows itself; nothing in src/ knows lab/", check_link_direction},
      Rule{"wing-direction", "a wing of src/ links those below it; program and agent never each other",
           check_wing_direction},
      Rule{"folder-table", "the documents' tables say whom the folders link", check_folder_table},
      Rule{"function-length", "no function is longer than 70 lines", check_function_length},
      Rule{"file-length", "no file is longer than 900 lines", check_file_length},
      Rule{"os-calls", "only src/ground/os and softgpu call the operating system", check_os_calls},
      Rule{"unlisted-test", "every *_test file is named in a CMakeLists.txt", check_unlisted_tests},
      Rule{"licence-line", "the first line is the SPDX line", check_licence_line},
      Rule{"library-exit", "libraries return errors, they never end the process", check_library_exit},
      Rule{"using-namespace", "no `using namespace` in a header", check_using_namespace},
      Rule{"open-end", "no notes about work left to do", check_open_ends},
      Rule{"line-length", "no line of prose or of CMake is longer than 120 characters", check_line_length},
      Rule{"document-words", "the documents have no more words than they may", check_document_words},
      Rule{"reference", "a document, file or result that is named is there", check_references},
      Rule{"type-name", "no two headers of src/ define types of one name", check_type_names},
      Rule{"comment-subject", "a comment is a sentence with a subject", check_comment_subjects},
      Rule{"kernel-layer", "a file of kernel/ calls files of earlier layers only", check_kernel_layers},
  };
  return rules;
}

}  // namespace firebreak::tidy
