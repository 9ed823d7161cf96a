// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/core_dump.h"

#include <charconv>

namespace firebreak::fault {
namespace {

constexpr std::size_t longest_name = 512;
constexpr std::string_view mark = "coredump: ";
constexpr std::string_view detected = "Detected an exception of type ";
constexpr std::string_view type_prefix = "CUDBG_EXCEPTION_";

/// The text behind "[06:43:15.209195] coredump: "; empty for any other line.
std::string_view text_of(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (!line.starts_with('[')) return {};
  const std::size_t found = line.find(mark);
  // The time is short; further in, somebody only quotes such a line.
  if (found == std::string_view::npos || found > 32) return {};
  return line.substr(found + mark.size());
}

bool consume(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

void skip_blanks(std::string_view& text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
}

template <class T>
std::optional<T> number(std::string_view text, int base) {
  if (base == 16 && !consume(text, "0x")) return std::nullopt;
  T value{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (parsed.ec != std::errc{}) return std::nullopt;
  return value;
}

/// "#0	0x7462c3bac620	_Z6kernelPi": the innermost function.
std::string kernel_of(std::string_view frame) {
  skip_blanks(frame);
  frame.remove_prefix(std::min(frame.find_first_of(" \t"), frame.size()));
  skip_blanks(frame);
  return std::string(frame.substr(0, std::min(frame.find_first_of(" \t"), longest_name)));
}

}  // namespace

bool is_about_exception(std::string_view line) {
  std::string_view text = text_of(line);
  skip_blanks(text);
  return text.starts_with(detected) || text.starts_with("- ") || text.starts_with("#0");
}

std::optional<CoreDumpException> CoreDumpReader::read(std::string_view line) {
  std::string_view text = text_of(line);
  if (text.empty()) return std::nullopt;
  if (consume(text, detected)) {
    exception_ = CoreDumpException{};
    exception_.type = std::string(text.substr(0, std::min(text.find(' '), longest_name)));
    in_exception_ = exception_.type.starts_with(type_prefix) && exception_.type.size() > type_prefix.size();
    return std::nullopt;
  }
  if (!in_exception_) return std::nullopt;
  skip_blanks(text);
  if (consume(text, "- Device: ")) {
    exception_.device = number<std::uint32_t>(text, 10);
  } else if (consume(text, "- SM: ")) {
    exception_.sm = number<std::uint32_t>(text, 10);
  } else if (consume(text, "- Warp: ")) {
    exception_.warp = number<std::uint32_t>(text, 10);
  } else if (consume(text, "- PC ") || consume(text, "- PC: ")) {
    exception_.program_counter = number<std::uint64_t>(text, 16);
    in_exception_ = exception_.warp.has_value();
    if (in_exception_) return exception_;
  } else if (consume(text, "#0")) {
    in_exception_ = false;
    if (!exception_.warp) return std::nullopt;
    exception_.kernel = kernel_of(text);
    return exception_;
  }
  return std::nullopt;
}

Fault from_core_dump(const CoreDumpException& exception, pid_t pid, Monotonic when) {
  Fault fault;
  // A load whose page is missing reaches the warp as an illegal address; the rest is the SM's own.
  fault.fault_class =
      exception.type.ends_with("_ILLEGAL_ADDRESS") ? FaultClass::MmuReplayable : FaultClass::Sm;
  std::string_view type = exception.type;
  consume(type, type_prefix);
  fault.kind = std::string(type);
  if (exception.sm) fault.kind += ", SM " + std::to_string(*exception.sm);
  if (exception.warp) fault.kind += ", warp " + std::to_string(*exception.warp);
  if (exception.program_counter) {
    char digits[17] = {};
    std::to_chars(digits, digits + 16, *exception.program_counter, 16);
    fault.kind += std::string(", PC 0x") + digits;
  }
  if (!exception.kernel.empty()) fault.kind += ", kernel " + exception.kernel;
  fault.pid = pid;
  fault.when = when;
  fault.source = FaultSource::CoreDump;
  return fault;
}

}  // namespace firebreak::fault
