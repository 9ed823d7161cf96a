// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/mps_log.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace firebreak::fault {
namespace {

constexpr std::size_t longest_text = 300;

/// In lower case. NVIDIA documents no texts, and they change between drivers, so these are the words that a
/// line about a fault cannot do without.
constexpr std::string_view fault_words[] = {"fatal", "fault", "exception", "uncontained"};
/// A server's state alone: the daemon's answer to somebody's get_server_status, which it logs too (H100,
/// driver 580: a whole incident for each time a draining domain was looked at).
constexpr std::string_view state_answer = "FAULT";
/// The end of the line about a client whose connection broke. What stands before it names the cause as the
/// status of a call; its spelling changed between drivers.
constexpr std::string_view left_words[] = {"assuming client", "exit"};
constexpr std::string_view arrival_words[] = {"new client", "new server", "} connected"};
/// What stands in front of a client's number.
constexpr std::string_view client_words[] = {
    "client pid ", "client process ", "client ", "pid ", "pid=", "pid: "};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// What follows "[DATE TIME WRITER PID] "; empty when the line begins otherwise.
std::string_view after_prefix(std::string_view line) {
  if (!line.starts_with('[')) return {};
  const std::size_t end = line.find("] ");
  if (end == std::string_view::npos || end > 80) return {};
  return line.substr(end + 2);
}

std::optional<pid_t> client_of(std::string_view text) {
  for (const std::string_view word : client_words) {
    const std::size_t found = text.find(word);
    if (found == std::string_view::npos) continue;
    const std::string_view number = text.substr(found + word.size());
    pid_t pid = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (parsed.ec == std::errc{} && pid > 0) return pid;
  }
  return std::nullopt;
}

}  // namespace

std::optional<MpsLogLine> parse_mps_log(std::string_view line) {
  std::string_view text = after_prefix(line);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty() || text == state_answer) return std::nullopt;
  text = text.substr(0, longest_text);
  const std::string words = lower(text);
  const auto has = [&words](std::string_view word) { return words.find(word) != std::string::npos; };
  const bool left = std::ranges::all_of(left_words, has);
  const bool fault = std::ranges::any_of(fault_words, has);
  if (!left && !fault && !std::ranges::any_of(arrival_words, has)) return std::nullopt;
  const MpsLogEvent event = left    ? MpsLogEvent::ClientLeft
                            : fault ? MpsLogEvent::Fault
                                    : MpsLogEvent::Arrival;
  return MpsLogLine{event, std::string(text), client_of(words)};
}

}  // namespace firebreak::fault
