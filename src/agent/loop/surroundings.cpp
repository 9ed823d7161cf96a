// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/surroundings.h"

#include "ground/os/file.h"
#include "shared/abi/spare_page.h"

namespace firebreak::agent {
namespace {

constexpr const char* pipe_directory_variable = "CUDA_MPS_PIPE_DIRECTORY";

}  // namespace

Status set_parked_file(const std::string& pipe_directory, bool is_parked) {
  const std::string file = pipe_directory + "/" + abi::parked_file;
  const Status removed = os::remove_file(file);
  return is_parked ? os::make_file(file) : removed;
}

Status Domains::mark_parked(const std::string& domain, bool is_parked) {
  return set_parked_file(pipe_directory(domain), is_parked);
}

std::string Domains::pipe_directory(const std::string& domain) const {
  for (const auto& [name, value] : environment(domain)) {
    if (name == pipe_directory_variable) return value;
  }
  return {};
}

std::string Domains::with_pipe_directory(const std::string& path) const {
  for (const std::string& name : names()) {
    if (!path.empty() && pipe_directory(name) == path) return name;
  }
  return {};
}

}  // namespace firebreak::agent
