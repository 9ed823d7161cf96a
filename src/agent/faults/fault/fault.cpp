// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/fault.h"

#include <array>
#include <charconv>

#include "agent/faults/fault/source_traits.h"

namespace firebreak::fault {
namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

}  // namespace

const char* to_string(FaultClass fault_class) {
  switch (fault_class) {
    case FaultClass::MmuReplayable:
      return "MMU (replayable)";
    case FaultClass::MmuNonReplayable:
      return "MMU (non-replayable)";
    case FaultClass::Sm:
      return "SM";
    case FaultClass::Termination:
      return "termination";
    case FaultClass::Device:
      return "device";
    case FaultClass::Unknown:
      return "unknown class";
  }
  return "unknown class";
}

const char* to_string(FaultSource source) { return traits_of(source).name; }

bool is_departure(const Fault& fault) {
  const TellsOfDepartures told = traits_of(fault.source).departures;
  return told == TellsOfDepartures::Always ||
         (told == TellsOfDepartures::ByClass && fault.fault_class == FaultClass::Termination);
}

bool ends_group(const Fault& fault) {
  if (fault.fault_class == FaultClass::MmuReplayable || fault.fault_class == FaultClass::Sm) return true;
  return fault.fault_class == FaultClass::MmuNonReplayable && fault.place.starts_with("GR") &&
         fault.place.find("_PBDMA") != std::string::npos;
}

std::string describe(const Fault& fault) {
  std::string text = fault.kind.empty() ? "fault" : fault.kind;
  text += std::string(", ") + to_string(fault.fault_class);
  if (fault.address) text += ", address " + hexadecimal(*fault.address);
  if (fault.tenant) text += ", tenant " + *fault.tenant;
  if (fault.pid) text += ", process " + std::to_string(*fault.pid);
  if (!fault.domain.empty()) text += ", domain " + fault.domain;
  return text + ", from " + to_string(fault.source);
}

}  // namespace firebreak::fault
