// SPDX-License-Identifier: Apache-2.0
#include "shared/guard_page/probe_result.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "ground/os/file.h"

namespace firebreak::guard {
namespace {

constexpr const char* boot_id_path = "/proc/sys/kernel/random/boot_id";
constexpr std::size_t name_bytes_max = 128;

struct Spelling {
  ProbeResult::Answer answer;
  std::string_view text;
};
constexpr std::array spellings{Spelling{ProbeResult::Answer::Works, "works"},
                               Spelling{ProbeResult::Answer::Fails, "fails"}};

std::string line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The boot and the driver that a result is about.
struct Place {
  std::string boot;
  std::string driver;
  /// One file a driver, so that the software GPU's answer and the real one's lie beside each other.
  std::string file_name(Probed what) const {
    std::string name = what == Probed::GuardRanges ? "guard-ranges-" : "spares-";
    name += driver.substr(0, name_bytes_max);
    const auto is_plain = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
    };
    std::ranges::replace_if(
        name, [&](char c) { return !is_plain(c); }, '-');
    return name;
  }
};

Result<Place> this_place(os::Kernel& kernel) {
  const auto boot = kernel.read_file(boot_id_path);
  if (!boot) return propagate(boot);
  const auto driver = kernel.gpu_driver();
  if (!driver) return propagate(driver);
  return Place{line_of(*boot), line_of(*driver)};
}

}  // namespace

ProbeResult known_probe_result(os::Kernel& kernel, Probed what) {
  const auto place = this_place(kernel);
  if (!place) return {ProbeResult::Answer::Untested, place.error().message};
  const auto content = os::read_runtime_file(os::runtime_folder(), place->file_name(what));
  const ProbeResult untested{ProbeResult::Answer::Untested, "not since this boot, with this driver"};
  if (!content && content.error().code == ErrorCode::NotFound) return untested;
  if (!content) return {ProbeResult::Answer::Untested, content.error().message};
  std::istringstream lines(*content);
  std::string boot, driver, word, reason;
  std::getline(lines, boot);
  std::getline(lines, driver);
  std::getline(lines, word);
  std::getline(lines, reason);
  if (boot != place->boot || driver != place->driver) return untested;
  const auto found = std::ranges::find(spellings, word, &Spelling::text);
  return found == spellings.end() ? untested : ProbeResult{found->answer, reason};
}

Status keep_probe_result(os::Kernel& kernel, Probed what, const ProbeResult& result) {
  const auto found = std::ranges::find(spellings, result.answer, &Spelling::answer);
  if (found == spellings.end()) return {};
  const auto place = this_place(kernel);
  if (!place) return propagate(place);
  return os::replace_runtime_file(os::runtime_folder(), place->file_name(what),
                                  place->boot + "\n" + place->driver + "\n" + std::string(found->text) +
                                      "\n" + line_of(result.reason) + "\n");
}

std::string describe(const ProbeResult& result) {
  switch (result.answer) {
    case ProbeResult::Answer::Works:
      return "works";
    case ProbeResult::Answer::Fails:
      return "fails: " + result.reason;
    case ProbeResult::Answer::Untested:
      break;
  }
  return "not tested: " + result.reason;
}

}  // namespace firebreak::guard
