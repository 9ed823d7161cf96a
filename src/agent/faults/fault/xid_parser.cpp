// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "agent/faults/fault/xid.h"

namespace firebreak::fault {
namespace {

/// A kernel record is shorter; what is longer is not the driver's.
constexpr std::size_t longest_line = 4096;
constexpr std::size_t longest_word = 64;
constexpr int xid_memory_fault = 31;

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

  /// Everything before the next blank or the end; the blanks behind it are consumed.
  std::string_view word() {
    const std::string_view before = text_.substr(0, text_.find_first_of(" \t"));
    text_.remove_prefix(before.size());
    skip_spaces();
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

/// Returns the text behind the last `marker`; empty when there is none. It is the last, since what a process
/// has called itself stands before the driver's own words.
std::optional<std::string_view> after_last(std::string_view text, std::string_view marker) {
  const std::size_t found = text.rfind(marker);
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

/// "GPU-I:05" with that label; empty: it is none.
std::optional<std::uint32_t> instance(std::string_view word, std::string_view label) {
  if (!word.starts_with(label)) return std::nullopt;
  return number<std::uint32_t>(word.substr(label.size()), 10);
}

/// Reads the text between the parentheses: "PCI:0000:3b:00", with "GPU-I:01 GPU-CI:02" behind it for an
/// instance of MIG. Drivers of long ago left "PCI:" out.
bool parse_place(std::string_view place, XidLine& line) {
  const bool has_label = place.starts_with("PCI:");
  if (has_label) place.remove_prefix(4);
  Cursor rest(place);
  const std::string_view address = rest.word();
  // The address is whole: shorter ones might be part of another line.
  if (!has_label && address.size() != std::string_view("0000:00:00").size()) return false;
  line.pci = pci_address(address);
  if (line.pci.empty()) return false;
  if (rest.rest().empty()) return true;
  line.gpu_instance = instance(rest.word(), "GPU-I:");
  if (!line.gpu_instance) return false;
  if (rest.rest().empty()) return true;
  line.compute_instance = instance(rest.word(), "GPU-CI:");
  return line.compute_instance.has_value() && rest.rest().empty();
}

/// "NVRM: Xid (PCI:0000:00:05): 31" and the comma behind it. The kernel's other lines begin with the names of
/// processes, which choose them, in 15 characters.
bool parse_head(Cursor& cursor, XidLine& line) {
  cursor.skip_spaces();
  if (cursor.consume("[") && !cursor.until(']')) return false;
  cursor.skip_spaces();
  if (!cursor.consume("NVRM: Xid (")) return false;
  const std::optional<std::string_view> place = cursor.until(')');
  if (!place || !parse_place(*place, line) || !cursor.consume(":")) return false;
  cursor.skip_spaces();
  const std::optional<int> code = number<int>(cursor.field(), 10);
  if (!code || *code < 0) return false;
  line.code = *code;
  return true;
}

/// Words in front of a channel's number, at the beginning of what follows the process.
constexpr std::string_view channel_words[] = {"Ch ", "channel 0x", "Channel ID ", "Channel "};
/// The same further back.
constexpr std::string_view inner_channel_words[] = {"ChID ", "ChId "};

/// The hexadecimal number at the beginning, where it is not the beginning of a word.
std::string_view leading_digits(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789abcdefABCDEF"));
  const std::string_view rest = text.substr(digits.size());
  return rest.empty() || rest.front() == ',' || rest.front() == ' ' ? digits : std::string_view();
}

bool begins_with_channel(std::string_view text) {
  return std::ranges::any_of(channel_words, [text](std::string_view word) {
    return text.starts_with(word) && !leading_digits(text.substr(word.size())).empty();
  });
}

/// Returns where the name ends that `text` begins with. Linux cuts it to 15 characters, and any of them may
/// be a comma: a channel behind a later comma of these is the driver's own, since the driver prints it behind
/// the name.
std::size_t end_of_name(std::string_view text) {
  constexpr std::size_t longest_name = 15;
  constexpr std::string_view separator = ", ";
  const std::size_t first = text.find(separator);
  std::size_t end = first;
  for (std::size_t at = first; at <= longest_name; at = text.find(separator, at + 1)) {
    if (begins_with_channel(text.substr(at + separator.size()))) end = at;
  }
  return std::min(end, text.size());
}

void parse_name(Cursor& cursor, XidLine& line) {
  if (!cursor.consume("name=")) return;
  const std::string_view name = cursor.rest().substr(0, end_of_name(cursor.rest()));
  cursor.consume(name);
  if (cursor.consume(",")) cursor.skip_spaces();
  const bool is_one = !name.empty() && name.size() <= longest_word && name != "<unknown>";
  if (is_one && name.find(',') == std::string_view::npos) line.process = std::string(name);
}

void parse_channel(Cursor& cursor, XidLine& line) {
  const bool is_next = begins_with_channel(cursor.rest());
  for (const std::string_view word : channel_words) {
    if (!is_next || !cursor.consume(word)) continue;
    const std::string_view digits = leading_digits(cursor.rest());
    line.channel = number<std::uint32_t>(digits, 16);
    cursor.consume(digits);
    if (cursor.consume(",")) cursor.skip_spaces();
    return;
  }
  for (const std::string_view word : inner_channel_words) {
    if (const auto its = after_last(cursor.rest(), word))
      line.channel = number<std::uint32_t>(leading_digits(*its), 16);
  }
}

/// The fields that any Xid may have, in the order the driver prints them.
void parse_common_fields(Cursor& cursor, XidLine& line) {
  if (cursor.consume("pid=")) line.pid = number<pid_t>(cursor.field(), 10);
  if (line.pid && *line.pid <= 0) line.pid.reset();
  parse_name(cursor, line);
  parse_channel(cursor, line);
}

/// "ENGINE GRAPHICS GPC2 GPCCLIENT_T1_3 faulted @": the last word before "faulted" is the client, if there
/// are two.
void parse_engine(std::string_view detail, XidLine& line) {
  const std::optional<std::string_view> tail = after_last(detail, "MMU Fault: ENGINE ");
  if (!tail) return;
  const std::size_t end = tail->find(" faulted @");
  if (end == std::string_view::npos || end > 2 * longest_word) return;
  const std::string_view words = tail->substr(0, end);
  const std::size_t last_space = words.rfind(' ');
  line.engine = std::string(words.substr(0, last_space));
  if (last_space != std::string_view::npos) line.client = std::string(words.substr(last_space + 1));
}

void parse_memory_fault(std::string_view detail, XidLine& line) {
  parse_engine(detail, line);
  if (const auto address = after_last(detail, " faulted @ 0x")) line.address = leading_address(*address);
  if (const auto type = after_last(detail, "Fault is of type ")) line.fault_type = leading_word(*type);
  if (const std::size_t access = detail.rfind("ACCESS_TYPE_"); access != std::string_view::npos) {
    line.access_type = leading_word(detail.substr(access));
  }
}

bool behind_the_hub(const XidLine& line) {
  if (line.client) return line.client->starts_with("HUBCLIENT");
  return line.engine && !line.engine->starts_with("GRAPHICS");
}

void set_meaning(Fault& fault, const XidMeaning& meaning) {
  fault.fault_class = meaning.fault_class;
  fault.is_notice = meaning.is_notice;
  fault.conclusive = meaning.is_conclusive && !meaning.is_notice;
  fault.needs = meaning.needs;
  fault.follows_xid = meaning.follows_xid;
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
  if (line.code == xid_memory_fault) parse_memory_fault(cursor.rest(), line);
  return line;
}

Fault from_xid_number(int code, FaultSource source, Monotonic when) {
  Fault fault;
  set_meaning(fault, meaning_of(code, std::nullopt));
  fault.kind = "Xid " + std::to_string(code);
  fault.xid = code;
  fault.when = when;
  fault.source = source;
  return fault;
}

Fault from_xid(const XidLine& line, Monotonic when) {
  Fault fault = from_xid_number(line.code, FaultSource::Xid, when);
  set_meaning(fault, meaning_of(line.code, line.detail));
  // Replayable or not: only the MMU client tells.
  if (fault.fault_class == FaultClass::MmuReplayable && behind_the_hub(line)) {
    fault.fault_class = FaultClass::MmuNonReplayable;
  }
  fault.gpu.pci = line.pci;
  if (line.gpu_instance) fault.gpu.instance = "GPU-I:" + std::to_string(*line.gpu_instance);
  if (line.compute_instance) fault.gpu.instance += " GPU-CI:" + std::to_string(*line.compute_instance);
  fault.pid = line.pid;
  fault.address = line.address;
  if (line.engine) fault.place = *line.engine;
  if (line.client) fault.place += " " + *line.client;
  return fault;
}

}  // namespace firebreak::fault
