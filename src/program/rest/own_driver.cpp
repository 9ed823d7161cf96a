// SPDX-License-Identifier: Apache-2.0
#include "program/rest/own_driver.h"

#include <algorithm>
#include <iterator>

#include "ground/os/memory.h"

namespace firebreak::rest {
namespace {

/// MPS's memory that its clients share.
constexpr std::string_view mps_memory = "/dev/shm/cuda.shm.";
/// The abstract socket by which a driver says that it is there.
constexpr std::string_view presence = "@cuda-uvmfd-";

bool is_nvml_there() {
  return std::ranges::any_of(os::named_regions(), [](const os::NamedRegion& region) {
    return region.name.find("/libnvidia-ml.so") != std::string::npos;
  });
}

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

std::set<int> OwnDescriptors::of_gpu() {
  std::set<int> found;
  for (const auto& [number, name] : os::named_descriptors())
    if (is_of_gpu(name)) found.insert(number);
  return found;
}

void OwnDescriptors::note_new(const std::set<int>& before) {
  std::ranges::set_difference(of_gpu(), before, std::inserter(all_, all_.end()));
}

Replaced replace_own_driver(const os::QuietSocket& socket, const OwnDescriptors& own,
                            const std::set<int>& kept, const std::string& pipe_directory) {
  Replaced all;
  const bool has_nvml = is_nvml_there();
  for (const auto& [number, name] : os::named_descriptors()) {
    bool is_its = is_of_gpu(name) && !kept.contains(number) && (!has_nvml || own.all().contains(number));
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
