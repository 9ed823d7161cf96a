// SPDX-License-Identifier: Apache-2.0
#include "ground/platform/gpu_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace firebreak::platform {
namespace {

constexpr const char* gpus_folder = "/proc/driver/nvidia/gpus";
constexpr const char* uuid_label = "GPU UUID:";

}  // namespace

std::vector<ListedGpu> listed_gpus(os::Kernel& kernel) {
  std::vector<ListedGpu> gpus;
  const auto names = kernel.list_directory(gpus_folder);
  if (!names) return gpus;
  for (const std::string& name : *names) {
    const auto text = kernel.read_file(fmt::format("{}/{}/information", gpus_folder, name));
    if (!text) continue;
    const std::size_t label = text->find(uuid_label);
    const std::size_t begin = text->find("GPU-", label == std::string::npos ? label : label + 9);
    if (begin == std::string::npos) continue;
    gpus.push_back({text->substr(begin, text->find_first_of(" \t\n", begin) - begin), name});
  }
  std::ranges::sort(gpus, {}, &ListedGpu::pci);
  return gpus;
}

Result<std::string> choose_gpu(const std::vector<std::string>& uuids, const std::string& wanted) {
  if (wanted.starts_with("MIG-")) {
    return fail(ErrorCode::Unsupported,
                fmt::format("'{}' is an instance of MIG, and a domain has a whole GPU", wanted),
                "name the GPU, with MIG turned off");
  }
  if (uuids.empty()) return wanted;
  std::vector<std::string> found;
  for (const std::string& uuid : uuids) {
    if (uuid.starts_with(wanted)) found.push_back(uuid);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("there is no GPU '{}'", wanted),
                fmt::format("there is {}", fmt::join(uuids, ", ")));
  }
  return fail(ErrorCode::InvalidArgument, fmt::format("several GPUs begin with '{}'", wanted),
              fmt::format("{}", fmt::join(found, ", ")));
}

}  // namespace firebreak::platform
