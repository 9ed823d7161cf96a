// SPDX-License-Identifier: Apache-2.0
/// The meaning of an Xid, by its number and its words.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

constexpr int xid_preemptive_removal = 45;
constexpr int xid_nvlink = 74;
constexpr int xid_contained = 94;
constexpr int xid_uncontained = 95;
constexpr int xid_recovery_action = 154;

/// NVLink 5 prints each of these with "Fatal" or "Nonfatal".
constexpr bool is_of_nvlink5(int code) { return code >= 144 && code <= 150; }

/// Returns the text behind the last `marker`. The driver's words come after the name that a process has given
/// itself.
std::optional<std::string_view> after_last(std::string_view words, std::string_view marker) {
  const std::size_t found = words.rfind(marker);
  if (found == std::string_view::npos) return std::nullopt;
  return words.substr(found + marker.size());
}

template <class T>
std::optional<T> leading_number(std::string_view text, int base) {
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return parsed.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

DeviceNeed need_by(XidAction action) {
  switch (action) {
    case XidAction::ResetGpu:
    case XidAction::WorkflowNvlink5:
      return DeviceNeed::Reset;
    case XidAction::WorkflowXid48:
      return DeviceNeed::Drain;
    case XidAction::RestartMachine:
    case XidAction::RestartVirtualMachine:
    case XidAction::CheckMechanicals:
      return DeviceNeed::Reboot;
    default:
      return DeviceNeed::Unsaid;
  }
}

/// Returns the place of the last such word that stands by itself; npos: there is none.
std::size_t last_whole(std::string_view words, std::string_view word) {
  const auto is_of_word = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; };
  for (std::size_t at = words.rfind(word); at != words.npos && at != 0; at = words.rfind(word, at - 1)) {
    const std::size_t end = at + word.size();
    if (words[at - 1] == ' ' && (end == words.size() || !is_of_word(words[end]))) return at;
  }
  return words.npos;
}

/// "TREX Nonfatal XC0 i0 Link 00 (0x...)", "NETIR_LINK_EVT  Fatal   XC0 ...": what stands before "XC".
void read_nvlink5(XidMeaning& meaning, std::string_view words) {
  const std::size_t fatal = last_whole(words, "Fatal");
  const std::size_t nonfatal = last_whole(words, "Nonfatal");
  const bool says_fatal = fatal != std::string_view::npos;
  const bool says_nonfatal = nonfatal != std::string_view::npos;
  meaning.is_notice = says_nonfatal && (!says_fatal || nonfatal > fatal);
  meaning.is_conclusive = says_fatal || says_nonfatal;
}

/// "GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)": NVML's
/// nvmlDeviceGpuRecoveryAction_t.
void read_recovery_action(XidMeaning& meaning, std::string_view words) {
  constexpr std::array needs = {DeviceNeed::Nothing, DeviceNeed::Reset, DeviceNeed::Reboot, DeviceNeed::Drain,
                                DeviceNeed::Drain};
  const auto digits = after_last(words, " to 0x");
  const auto action = digits ? leading_number<std::size_t>(*digits, 16) : std::nullopt;
  meaning.is_conclusive = action.has_value();
  if (!action) return;
  // An action of a newer driver is asked for, and none here is too much for it.
  meaning.needs = *action < needs.size() ? needs.at(*action) : DeviceNeed::Reset;
  meaning.is_notice = meaning.needs == DeviceNeed::Nothing;
}

/// "Contained: SM (0x1). RST: No, D-RST: Yes": whether a reset is needed, and whether after a drain.
void read_resets(XidMeaning& meaning, std::string_view words) {
  const auto after_drain = after_last(words, ", D-RST: ");
  if (after_drain && after_drain->starts_with("Yes"))
    meaning.needs = std::max(meaning.needs, DeviceNeed::Drain);
  const auto at_once = after_last(words, ". RST: ");
  if (at_once && at_once->starts_with("Yes")) meaning.needs = DeviceNeed::Reset;
}

/// "NVLink: fatal error detected on link 14(...)".
void read_nvlink(XidMeaning& meaning, std::string_view words) {
  const auto its = after_last(words, "NVLink: ");
  if (its && its->starts_with("fatal ")) meaning.needs = DeviceNeed::Reset;
}

/// "Ch 00000001 caused by previous Xid 149".
void read_cause(XidMeaning& meaning, std::string_view words) {
  if (const auto cause = after_last(words, "caused by previous Xid "))
    meaning.follows_xid = leading_number<int>(*cause, 10);
}

}  // namespace

XidMeaning meaning_of(int code, std::optional<std::string_view> words) {
  const XidEntry entry = find_xid(code);
  XidMeaning meaning;
  meaning.fault_class = entry.fault_class;
  const bool is_of_device = entry.fault_class == FaultClass::Device;
  meaning.is_notice = is_of_device && entry.action == XidAction::Ignore;
  if (is_of_device && !meaning.is_notice) meaning.needs = need_by(entry.action);
  if (is_of_nvlink5(code)) read_nvlink5(meaning, words.value_or(""));
  if (code == xid_recovery_action) read_recovery_action(meaning, words.value_or(""));
  if (code == xid_contained || code == xid_uncontained) read_resets(meaning, words.value_or(""));
  if (code == xid_nvlink) read_nvlink(meaning, words.value_or(""));
  if (code == xid_preemptive_removal) read_cause(meaning, words.value_or(""));
  const bool is_told_otherwise = meaning.is_notice || !meaning.is_conclusive;
  if (is_told_otherwise && meaning.needs != DeviceNeed::Nothing) meaning.needs = DeviceNeed::Unsaid;
  return meaning;
}

}  // namespace firebreak::fault
