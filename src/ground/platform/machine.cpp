// SPDX-License-Identifier: Apache-2.0
#include "ground/platform/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace firebreak::platform {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// "Model: \t\t NVIDIA H100 80GB HBM3" in the first GPU's procfs file.
std::string real_gpu_name(os::Kernel& kernel) {
  const std::string folder = "/proc/driver/nvidia/gpus";
  const auto gpus = kernel.list_directory(folder);
  if (!gpus || gpus->empty()) return {};
  const auto text = kernel.read_file(fmt::format("{}/{}/information", folder, gpus->front()));
  if (!text) return {};
  const std::size_t model = text->find("Model:");
  if (model == std::string::npos) return {};
  const std::size_t begin = text->find_first_not_of(" \t", model + 6);
  return begin == std::string::npos ? std::string() : first_line(text->substr(begin));
}

/// The first word with two dots in /proc/driver/nvidia/version.
std::string real_driver_version(os::Kernel& kernel) {
  const auto text = kernel.read_file("/proc/driver/nvidia/version");
  if (!text) return {};
  std::string word;
  for (char c : *text) {
    if ((c >= '0' && c <= '9') || c == '.') {
      word += c;
      continue;
    }
    if (word.find('.') != word.rfind('.') && word.front() != '.') return word;
    word.clear();
  }
  return word;
}

}  // namespace

std::string version() {
  const std::string commit = FIREBREAK_COMMIT;
  return commit.empty() ? FIREBREAK_VERSION : fmt::format("{} ({})", FIREBREAK_VERSION, commit);
}

Machine describe_machine(const Platform& platform) {
  Machine machine;
  const bool real = platform.gpu == Gpu::Real;
  machine.gpu = real ? real_gpu_name(*platform.kernel) : "Firebreak Software GPU";
  machine.driver = real ? real_driver_version(*platform.kernel) : "";
  machine.linux_release = first_line(platform.kernel->read_file("/proc/sys/kernel/osrelease").value_or(""));
  machine.commit = FIREBREAK_COMMIT;
  machine.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  return machine;
}

}  // namespace firebreak::platform
