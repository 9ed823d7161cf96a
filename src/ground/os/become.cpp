// SPDX-License-Identifier: Apache-2.0
#include "ground/os/become.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "ground/os/fd.h"
#include "ground/os/program_needs.h"
#include "ground/os/self.h"

namespace firebreak::os {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// A file that is there is not found where what Linux starts in its place is not.
Status failed_start(const std::string& program, const std::string& file, int error) {
  std::string starter = error == ENOENT ? starter_of(file) : std::string();
  if (starter.empty() || ::access(starter.c_str(), F_OK) == 0) return fail_errno("start " + program, error);
  const bool ends_with_return = starter.back() == '\r';
  if (ends_with_return) starter.pop_back();
  return fail(
      ErrorCode::NotFound, "start " + program + ": it names " + starter + " to run it, which is not there",
      ends_with_return ? "its lines end in CR and LF, and Linux takes the CR for a part of that name" : "");
}

}  // namespace

Result<std::string> program_file(const std::string& program) {
  if (auto found = find_program(program)) return std::move(*found);
  const bool has_folder = program.find('/') != std::string::npos;
  for (const std::string& candidate : files_called(program)) {
    struct stat info {};
    if (::stat(candidate.c_str(), &info) != 0) {
      if (has_folder && errno != ENOENT && errno != ENOTDIR) return fail_errno("start " + program, errno);
      continue;
    }
    if (S_ISDIR(info.st_mode) && has_folder)
      return fail(ErrorCode::PermissionDenied, program + " is a folder");
    if (S_ISREG(info.st_mode))
      return fail(ErrorCode::PermissionDenied, candidate + " may not be executed",
                  "chmod +x makes it a program");
  }
  return fail(ErrorCode::NotFound,
              has_folder ? "there is no file " + program : "there is no program " + program + " in PATH");
}

Status become_program(const std::string& file, const std::vector<std::string>& arguments,
                      const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> variables = environment_but_for([&](std::string_view name) {
    return std::ranges::any_of(environment, [&](const auto& each) { return each.first == name; });
  });
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  ::execvpe(file.c_str(), pointers_to(arguments).data(), pointers_to(variables).data());
  return failed_start(arguments.front(), file, errno);
}

}  // namespace firebreak::os
