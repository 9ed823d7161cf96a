// SPDX-License-Identifier: Apache-2.0
#include "program/rest/own_driver.h"

#include <algorithm>

#include "ground/os/memory.h"

namespace firebreak::rest {
namespace {

/// MPS's memory that its clients share.
constexpr std::string_view mps_memory = "/dev/shm/cuda.shm.";
/// The abstract socket by which a driver says that it is there.
constexpr std::string_view presence = "@cuda-uvmfd-";

}  // namespace

bool is_of_gpu(std::string_view name) {
  static const std::string software_rm = os::memory_file_link("nvidiactl");
  static const std::string software_uvm = os::memory_file_link("nvidia-uvm");
  return name.starts_with("/dev/nvidia") || name.starts_with(mps_memory) || name == software_rm ||
         name == software_uvm;
}

bool is_of_mps(std::string_view name, std::string_view peer, const std::string& pipe_directory) {
  const auto is_in = [&](std::string_view path) {
    return !pipe_directory.empty() && path.starts_with(pipe_directory) &&
           path.substr(pipe_directory.size()).starts_with('/');
  };
  return name.starts_with(presence) || is_in(name) || is_in(peer);
}

/// NVML opens the same devices.
const char* why_not_told_apart() {
  const auto regions = os::named_regions();
  const bool has_nvml = std::ranges::any_of(regions, [](const os::NamedRegion& region) {
    return region.name.find("/libnvidia-ml.so") != std::string::npos;
  });
  return has_nvml ? "NVML has devices open in it" : nullptr;
}

Replaced replace_own_driver(const os::QuietSocket& socket, const std::set<int>& kept,
                            const std::string& pipe_directory) {
  Replaced all;
  for (const auto& [number, name] : os::named_descriptors()) {
    bool is_its = is_of_gpu(name) && !kept.contains(number);
    if (name.starts_with("socket:")) {
      const os::SocketNames names = os::socket_names(number);
      is_its = is_of_mps(names.name, names.peer, pipe_directory);
    }
    if (is_its && os::stand_in_for_descriptor(socket, number)) ++all.descriptors;
  }
  for (const os::NamedRegion& region : os::named_regions())
    if (is_of_gpu(region.name) && os::stand_in_for_region(region.range)) ++all.mappings;
  return all;
}

}  // namespace firebreak::rest
