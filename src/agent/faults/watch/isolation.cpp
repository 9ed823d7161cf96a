// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/isolation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "ground/os/command_file.h"

namespace firebreak::watch {
namespace {

constexpr std::string_view known_format = "1";

tl::unexpected<Error> not_understood(std::string_view line) {
  return fail(ErrorCode::Protocol, fmt::format("fault isolation says '{}', which is not understood", line),
              "use the Firebreak that the module was built from");
}

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Takes the text up to `separator`, or all of it, off its front.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view front = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return front;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "UVM_FAULT_TYPE_INVALID_PDE" as "invalid pde"; "none" as nothing.
std::string plain(std::string_view constant) {
  if (constant == "none") return {};
  static_cast<void>(take_prefix(constant, "UVM_FAULT_ACCESS_TYPE_") ||
                    take_prefix(constant, "UVM_FAULT_TYPE_"));
  std::string text;
  for (const char c : constant) {
    text += c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

std::optional<IsolationMode> mode_of(std::string_view word) {
  if (word == "off") return IsolationMode::Off;
  if (word == "report") return IsolationMode::Report;
  if (word == "on") return IsolationMode::On;
  return std::nullopt;
}

const char* to_string(IsolationMode mode) {
  switch (mode) {
    case IsolationMode::Off:
      return "off";
    case IsolationMode::Report:
      return "report only";
    case IsolationMode::On:
      return "on";
  }
  return "off";
}

/// "no_range contained 2"
bool take_count(std::vector<IsolationCount>& counts, std::string_view line) {
  IsolationCount& count = counts.emplace_back();
  count.fault_class = take(line, ' ');
  count.word = take(line, ' ');
  return read_number(line, count.count);
}

/// Takes a field of what mode report foresees.
bool take_foreseen(IsolationState& state, std::string_view line) {
  const std::string_view key = take(line, ' ');
  if (key == "condemned") return read_number(line, state.foreseen_ends);
  if (key == "killed_at_once") return read_number(line, state.foreseen_ends_at_once);
  return key != "fault" || take_count(state.foreseen_faults, line);
}

/// True when the line was understood; for an unknown key every value is.
bool take_line(IsolationState& state, std::string_view line) {
  const std::string_view key = take(line, ' ');
  if (key == "format") return line == known_format;
  if (key == "mode") {
    const auto mode = mode_of(line);
    state.mode = mode.value_or(IsolationMode::Off);
    return mode.has_value();
  }
  if (key == "condemned") return read_number(line, state.condemned);
  if (key == "killed") return read_number(line, state.killed);
  if (key == "sinks") return read_number(line, state.sinks);
  if (key == "foreseen") return take_foreseen(state, line);
  return key != "fault" || take_count(state.faults, line);
}

/// True when "key=value" was understood, as above.
bool take_field(IsolationEvent& event, std::string_view key, std::string_view value) {
  if (key == "pid") {
    pid_t pid = 0;
    if (!read_number(value, pid)) return false;
    if (pid > 0) event.pid = pid;
    return true;
  }
  if (key == "address") return take_prefix(value, "0x") && read_number(value, event.address, 16);
  if (key == "us") return read_number(value, event.took_us);
  if (key == "path") event.replayable = value != "non_replayable";
  if (key == "access") event.access = plain(value);
  if (key == "type") event.type = plain(value);
  if (key == "class") event.fault_class = value;
  if (key == "outcome") event.word = value;
  return true;
}

/// Adds "3 contained (2 no_range, 1 external)" where there was one.
void add_sum(std::vector<std::string>& sums, const std::vector<IsolationCount>& counts,
             IsolationOutcome outcome, const char* name, bool with_words) {
  std::uint64_t sum = 0;
  std::string parts;
  for (const IsolationCount& count : counts) {
    if (outcome_of(count.word) != outcome) continue;
    sum += count.count;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count.count, count.fault_class);
    if (with_words) parts += " " + count.word;
  }
  if (sum > 0) sums.push_back(fmt::format("{} {} ({})", sum, name, parts));
}

std::vector<std::string> sums_of(const std::vector<IsolationCount>& counts) {
  std::vector<std::string> sums;
  add_sum(sums, counts, IsolationOutcome::Contained, "contained", false);
  add_sum(sums, counts, IsolationOutcome::Cancelled, "not contained", true);
  add_sum(sums, counts, IsolationOutcome::Spared, "spared", false);
  add_sum(sums, counts, IsolationOutcome::Deferred, "ends put off", false);
  return sums;
}

fault::FaultClass class_of(const IsolationEvent& event) {
  if (event.fault_class == "termination") return fault::FaultClass::Termination;
  return event.replayable ? fault::FaultClass::MmuReplayable : fault::FaultClass::MmuNonReplayable;
}

/// "contained: write, invalid pde, no_range"
std::string kind_of(const IsolationEvent& event) {
  if (outcome_of(event.word) == IsolationOutcome::Deferred) return "end of its address space put off";
  const bool contained = outcome_of(event.word) == IsolationOutcome::Contained;
  std::string text = contained ? "contained" : "not contained (" + event.word + ")";
  const char* separator = ": ";
  for (const std::string& part : {event.access, event.type, event.fault_class}) {
    if (part.empty()) continue;
    text += std::exchange(separator, ", ") + part;
  }
  return text;
}

}  // namespace

IsolationOutcome outcome_of(std::string_view word) {
  // "limit": of a module of before.
  constexpr std::array cancelled{"reported", "alone", "doubt", "unsupported", "failed", "limit"};
  if (word == "contained" || word == "held") return IsolationOutcome::Contained;
  if (word == "spared") return IsolationOutcome::Spared;
  if (word == "deferred") return IsolationOutcome::Deferred;
  return std::ranges::find(cancelled, word) != cancelled.end() ? IsolationOutcome::Cancelled
                                                               : IsolationOutcome::Unknown;
}

Result<IsolationState> parse_isolation_state(std::string_view text) {
  if (!text.starts_with("format ")) return not_understood(take(text, '\n'));
  IsolationState state;
  while (!text.empty()) {
    const std::string_view line = take(text, '\n');
    if (!take_line(state, line)) return not_understood(line);
  }
  return state;
}

Result<IsolationEvent> parse_isolation_event(std::string_view line) {
  std::string_view rest = line;
  IsolationEvent event;
  if (take(rest, ' ') != "event" || !read_number(take(rest, ' '), event.sequence))
    return not_understood(line);
  // The command is the last and may hold blanks.
  while (!rest.empty() && !take_prefix(rest, "command=")) {
    std::string_view value = take(rest, ' ');
    const std::string_view key = take(value, '=');
    if (!take_field(event, key, value)) return not_understood(line);
  }
  event.command = rest;
  if (event.fault_class.empty() || event.word.empty()) return not_understood(line);
  return event;
}

Result<IsolationEvent> parse_condemned(std::string_view line) {
  std::string_view rest = line;
  IsolationEvent event;
  pid_t pid = 0;
  if (!take_prefix(rest, "condemned pid=") || !read_number(take(rest, ' '), pid) || pid <= 0 ||
      !take_prefix(rest, "command=")) {
    return not_understood(line);
  }
  event.pid = pid;
  event.command = rest;
  event.word = "contained";
  event.fault_class = "its event was lost";
  return event;
}

Status name_mps_server(os::Kernel& kernel, pid_t server) {
  return os::write_command(kernel, isolation_servers_path, fmt::format("{}\n", server));
}

Result<IsolationState> read_isolation_state(os::Kernel& kernel) {
  const auto text = kernel.read_file(isolation_state_path);
  if (!text) return propagate(text);
  return parse_isolation_state(*text);
}

std::string describe(const IsolationState& state) {
  std::vector<std::string> parts = sums_of(state.faults);
  parts.emplace(parts.begin(), to_string(state.mode));
  if (state.killed > 0) parts.push_back(fmt::format("{} killed by the module", state.killed));
  std::vector<std::string> foreseen = sums_of(state.foreseen_faults);
  if (state.foreseen_ends > 0) {
    foreseen.push_back(fmt::format("{} clients ended, {} of them at once", state.foreseen_ends,
                                   state.foreseen_ends_at_once));
  }
  if (!foreseen.empty()) {
    parts.push_back(fmt::format("mode on would have come to: {}", fmt::join(foreseen, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::optional<fault::Fault> fault_of(const IsolationEvent& event, Monotonic when) {
  const IsolationOutcome outcome = outcome_of(event.word);
  if (outcome == IsolationOutcome::Spared || outcome == IsolationOutcome::Unknown) return std::nullopt;
  fault::Fault fault;
  fault.fault_class = class_of(event);
  fault.kind = kind_of(event);
  // "doubt": two processes share the address space, or it is an MPS server's.
  if (event.word != "doubt") fault.pid = event.pid;
  if (event.address != 0 || !event.type.empty()) fault.address = event.address;
  fault.conclusive = outcome != IsolationOutcome::Deferred;
  fault.contained = outcome == IsolationOutcome::Contained;
  fault.when = when;
  fault.source = fault::FaultSource::Isolation;
  return fault;
}

}  // namespace firebreak::watch
