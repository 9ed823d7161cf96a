// SPDX-License-Identifier: Apache-2.0
#include "ground/os/become.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
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

/// True where a shell may read it as its commands, as shells themselves decide: none of the bytes of its
/// first line is zero.
bool is_text(const std::string& file) {
  constexpr std::size_t most_looked_at = 256;
  std::string beginning(most_looked_at, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(beginning.data(), static_cast<std::streamsize>(most_looked_at));
  beginning.resize(static_cast<std::size_t>(stream.gcount()));
  return beginning.substr(0, beginning.find('\n')).find('\0') == std::string::npos &&
         !beginning.starts_with(ELFMAG);
}

/// A file that is there is not found where what Linux starts in its place is not.
Status failed_start(const std::string& program, const std::string& file, int error) {
  if (error == ENOEXEC)
    return fail(ErrorCode::Unsupported, "start " + program + ": it is no program that this machine runs",
                "it may be broken, or built for another kind of machine");
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
  const std::vector<char*> words = pointers_to(arguments);
  const std::vector<char*> its_environment = pointers_to(variables);
  // Not by the C library: a library that the user has put before it may tell of each call.
  (void)::syscall(SYS_execve, file.c_str(), words.data(), its_environment.data());
  // Commands without a first line that names their shell: the C library has one read them, whatever they are.
  if (errno == ENOEXEC && is_text(file)) ::execvpe(file.c_str(), words.data(), its_environment.data());
  return failed_start(arguments.front(), file, errno);
}

}  // namespace firebreak::os
