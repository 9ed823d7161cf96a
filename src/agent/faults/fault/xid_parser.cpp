// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

/// A kernel record is shorter; what is longer is not the driver's.
constexpr std::size_t longest_line = 4096;
constexpr std::size_t longest_word = 64;

/// Reads a line from left to right; every step says whether it could.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  std::string_view rest() const { return text_; }
  void skip_spaces() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size())); }

  bool consume(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }

  /// Everything before the next `end`, which is consumed as well; empty when there is none.
  std::optional<std::string_view> until(char end) {
    const std::size_t found = text_.find(end);
    if (found == std::string_view::npos) return std::nullopt;
    const std::string_view before = text_.substr(0, found);
    text_.remove_prefix(found + 1);
    return before;
  }

  /// Everything before the next ',' or the end; the comma and the spaces behind it are consumed.
  std::string_view field() {
    const std::size_t found = std::min(text_.find(','), text_.size());
    const std::string_view before = text_.substr(0, found);
    text_.remove_prefix(std::min(found + 1, text_.size()));
    skip_spaces();
    return before;
  }

 private:
  std::string_view text_;
};

/// A whole number that fills `text`; empty when it does not fit T.
template <class T>
std::optional<T> number(std::string_view text, int base) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, base);
  if (text.empty() || result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

/// The letters, digits and '_' at the beginning, if there are any and not too many.
std::optional<std::string> leading_word(std::string_view text) {
  const auto word_character = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const auto end = std::ranges::find_if_not(text, word_character);
  const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  if (word.empty() || word.size() > longest_word) return std::nullopt;
  return std::string(word);
}

/// What follows the first `marker`; empty when there is none.
std::optional<std::string_view> after(std::string_view text, std::string_view marker) {
  const std::size_t found = text.find(marker);
  if (found == std::string_view::npos) return std::nullopt;
  return text.substr(found + marker.size());
}

/// NVIDIA prints the 64-bit address in two halves: 0x7000_dead0000.
std::optional<std::uint64_t> leading_address(std::string_view text) {
  std::string digits;
  for (const char c : text.substr(0, 20)) {
    if (c == '_') continue;
    const bool hexadecimal = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!hexadecimal) break;
    digits += c;
  }
  return number<std::uint64_t>(digits, 16);
}

/// "0000:00:05": a domain, a bus and a device.
bool is_pci_address(std::string_view text) {
  constexpr std::string_view hexadecimal = "0123456789abcdefABCDEF";
  const auto is_number = [&](std::string_view digits, std::size_t size_max) {
    return !digits.empty() && digits.size() <= size_max &&
           digits.find_first_not_of(hexadecimal) == std::string_view::npos;
  };
  const std::size_t bus = std::min(text.find(':'), text.size());
  const std::size_t device = std::min(text.find(':', bus + 1), text.size());
  return device < text.size() && is_number(text.substr(0, bus), 8) &&
         is_number(text.substr(bus + 1, device - bus - 1), 2) && is_number(text.substr(device + 1), 2);
}

/// "NVRM: Xid (PCI:0000:00:05): 31" and the comma behind it. The kernel's other lines begin with the names of
/// processes, which choose them, in 15 characters.
bool parse_head(Cursor& cursor, XidLine& line) {
  cursor.skip_spaces();
  if (cursor.consume("[") && !cursor.until(']')) return false;
  cursor.skip_spaces();
  if (!cursor.consume("NVRM: Xid (PCI:")) return false;
  const std::optional<std::string_view> place = cursor.until(')');
  if (!place || !is_pci_address(*place) || !cursor.consume(":")) return false;
  line.pci = *place;
  cursor.skip_spaces();
  const std::optional<int> code = number<int>(cursor.field(), 10);
  if (!code || *code < 0) return false;
  line.code = *code;
  return true;
}

/// The fields that any Xid may have, in the order the driver prints them.
void parse_common_fields(Cursor& cursor, XidLine& line) {
  if (cursor.consume("pid=")) line.pid = number<pid_t>(cursor.field(), 10);
  if (line.pid && *line.pid <= 0) line.pid.reset();
  if (cursor.consume("name=")) {
    const std::string_view name = cursor.field();
    if (!name.empty() && name.size() <= longest_word && name != "<unknown>") line.process = std::string(name);
  }
  if (cursor.consume("Ch ") || cursor.consume("channel 0x"))
    line.channel = number<std::uint32_t>(cursor.field(), 16);
}

/// "ENGINE GRAPHICS GPC2 GPCCLIENT_T1_3 faulted @": the last word before "faulted" is the client, if there
/// are two.
void parse_engine(std::string_view detail, XidLine& line) {
  const std::optional<std::string_view> tail = after(detail, "ENGINE ");
  if (!tail) return;
  const std::size_t end = tail->find(" faulted");
  if (end == std::string_view::npos || end > 2 * longest_word) return;
  const std::string_view words = tail->substr(0, end);
  const std::size_t last_space = words.rfind(' ');
  line.engine = std::string(words.substr(0, last_space));
  if (last_space != std::string_view::npos) line.client = std::string(words.substr(last_space + 1));
}

void parse_memory_fault(std::string_view detail, XidLine& line) {
  parse_engine(detail, line);
  if (const auto address = after(detail, "faulted @ 0x")) line.address = leading_address(*address);
  if (const auto type = after(detail, "Fault is of type ")) line.fault_type = leading_word(*type);
  if (const std::size_t access = detail.find("ACCESS_TYPE_"); access != std::string_view::npos) {
    line.access_type = leading_word(detail.substr(access));
  }
}

bool behind_the_hub(const XidLine& line) {
  if (line.client) return line.client->starts_with("HUBCLIENT");
  return line.engine && !line.engine->starts_with("GRAPHICS");
}

}  // namespace

std::optional<XidLine> parse_xid(std::string_view kmsg_text) {
  const std::string_view first_line = kmsg_text.substr(0, kmsg_text.find('\n'));
  if (first_line.size() > longest_line) return std::nullopt;
  Cursor cursor(first_line);
  XidLine line;
  if (!parse_head(cursor, line)) return std::nullopt;
  parse_common_fields(cursor, line);
  line.detail = std::string(cursor.rest());
  parse_memory_fault(cursor.rest(), line);
  return line;
}

Fault from_xid(const XidLine& line, Monotonic when, std::uint32_t gpu) {
  Fault fault;
  fault.fault_class = find_xid(line.code).fault_class;
  // Only the MMU client tells whether the fault could have been replayed.
  if (fault.fault_class == FaultClass::MmuReplayable && behind_the_hub(line)) {
    fault.fault_class = FaultClass::MmuNonReplayable;
  }
  fault.kind = "Xid " + std::to_string(line.code);
  fault.gpu = gpu;
  fault.pid = line.pid;
  fault.address = line.address;
  fault.xid = line.code;
  if (line.engine) fault.place = *line.engine;
  if (line.client) fault.place += " " + *line.client;
  fault.when = when;
  fault.source = FaultSource::Xid;
  return fault;
}

}  // namespace firebreak::fault
