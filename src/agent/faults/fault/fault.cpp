// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/fault.h"

#include <array>
#include <charconv>
#include <optional>

#include "agent/faults/fault/source_traits.h"

namespace firebreak::fault {
namespace {

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

std::optional<unsigned> hexadecimal_number(std::string_view text, std::size_t most_digits) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  const bool is_all = !text.empty() && text.size() <= most_digits && parsed.ptr == end;
  return is_all && parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

std::string padded(unsigned value, std::size_t digits) {
  const std::string text = hexadecimal(value).substr(2);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

/// The group's own engines: "GRAPHICS GPC0 ...", "GR0_PBDMA1 ...".
bool is_of_graphics_engine(std::string_view place) {
  const std::string_view engine = place.substr(0, place.find(' '));
  return engine == "GRAPHICS" ||
         (engine.starts_with("GR") && engine.find("_PBDMA") != std::string_view::npos);
}

}  // namespace

bool may_be_same(const Gpu& one, const Gpu& other) {
  if (one.is_here != other.is_here) return false;
  if (one.number && other.number) return one.number == other.number;
  return one.pci.empty() || other.pci.empty() || one.pci == other.pci;
}

std::string describe(const Gpu& gpu) {
  std::string place = gpu.pci;
  if (!gpu.instance.empty()) place += (place.empty() ? "" : " ") + gpu.instance;
  if (!gpu.is_here) return "GPU " + place + ", which is none of this machine's";
  if (!gpu.number) return place.empty() ? std::string() : "GPU " + place;
  return "GPU " + std::to_string(*gpu.number) + (place.empty() ? "" : " (" + place + ")");
}

std::string pci_address(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::string_view function = dot == std::string_view::npos ? ".0" : text.substr(dot);
  if (function.size() != 2 || function[1] < '0' || function[1] > '7') return {};
  text = text.substr(0, dot);
  const std::size_t bus = text.find(':');
  const std::size_t device = bus == std::string_view::npos ? bus : text.find(':', bus + 1);
  if (device == std::string_view::npos) return {};
  const auto domain = hexadecimal_number(text.substr(0, bus), 8);
  const auto its_bus = hexadecimal_number(text.substr(bus + 1, device - bus - 1), 2);
  const auto its_device = hexadecimal_number(text.substr(device + 1), 2);
  if (!domain || !its_bus || !its_device) return {};
  return padded(*domain, 4) + ':' + padded(*its_bus, 2) + ':' + padded(*its_device, 2);
}

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

const char* to_string(DeviceNeed need) {
  switch (need) {
    case DeviceNeed::Drain:
      return "drain";
    case DeviceNeed::Reset:
      return "reset";
    case DeviceNeed::Reboot:
      return "reboot";
    case DeviceNeed::Unsaid:
    case DeviceNeed::Nothing:
      break;
  }
  return "nothing";
}

bool is_departure(const Fault& fault) {
  const TellsOfDepartures told = traits_of(fault.source).departures;
  return told == TellsOfDepartures::Always ||
         (told == TellsOfDepartures::ByClass && fault.fault_class == FaultClass::Termination);
}

bool ends_group(const Fault& fault) {
  switch (fault.fault_class) {
    case FaultClass::Sm:
      return true;
    case FaultClass::MmuReplayable:
      return !fault.xid || is_of_graphics_engine(fault.place);
    case FaultClass::MmuNonReplayable:
      return is_of_graphics_engine(fault.place);
    default:
      return false;
  }
}

std::string describe(const Fault& fault) {
  std::string text = fault.kind.empty() ? "fault" : fault.kind;
  text += std::string(", ") + to_string(fault.fault_class);
  if (fault.address) text += ", address " + hexadecimal(*fault.address);
  if (fault.tenant) text += ", tenant " + *fault.tenant;
  if (fault.pid) text += ", process " + std::to_string(*fault.pid);
  if (!fault.domain.empty()) text += ", domain " + fault.domain;
  if (const std::string gpu = describe(fault.gpu); !gpu.empty()) text += ", " + gpu;
  if (fault.needs > DeviceNeed::Nothing) text += std::string(", needs a ") + to_string(fault.needs);
  if (fault.needs == DeviceNeed::Nothing) text += ", well again";
  return text + ", from " + to_string(fault.source);
}

}  // namespace firebreak::fault
