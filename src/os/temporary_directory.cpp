// SPDX-License-Identifier: Apache-2.0
#include "os/temporary_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "os/errno_error.h"
#include "os/self.h"

namespace firebreak::os {
namespace {

/// Leaves room for our own names and for a socket's within the 108 bytes of a socket's path.
constexpr std::size_t longest_parent = 40;

std::string default_parent() {
  const std::string wanted = environment_variable("TMPDIR").value_or("/tmp");
  return wanted.empty() || wanted.size() > longest_parent ? "/tmp" : wanted;
}

}  // namespace

Result<TemporaryDirectory> TemporaryDirectory::create(const std::string& parent) {
  std::string path = (parent.empty() ? default_parent() : parent) + "/fb-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail_errno("make a directory " + path, errno);
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

void TemporaryDirectory::remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(std::exchange(path_, {}), ignored);
}

Status make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    if (::mkdir(path.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST) {
      return fail_errno("make the directory " + path.substr(0, end), errno);
    }
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno("make the directory " + path, errno);
  return {};
}

Status clear_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entries(path, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::filesystem::remove_all(entries->path(), error);
    if (error) break;
  }
  return error ? Status(fail_errno("clear the directory " + path, error.value())) : Status{};
}

}  // namespace firebreak::os
