// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/core_dump_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace firebreak::park {
namespace {

using Bytes = std::span<const std::byte>;

// ELF64, little endian.
constexpr std::size_t header_bytes = 64;
constexpr std::size_t section_bytes = 64;
constexpr std::uint16_t elf_core = 4;
constexpr std::uint16_t machine_cuda = 190;

// The types of a dump's sections.
constexpr std::uint32_t sm_table = 0x80000000 + 11;
constexpr std::uint32_t warp_table = 0x80000000 + 14;
constexpr std::uint32_t lane_table = 0x80000000 + 15;

// Offsets in the tables' entries.
constexpr std::size_t warp_number_at = 8;
constexpr std::size_t warp_is_broken_at = 20;
constexpr std::size_t warp_entry_min = 32;
constexpr std::size_t lane_counter_at = 0;
constexpr std::size_t lane_exception_at = 32;
constexpr std::size_t lane_entry_min = 36;

/// The code of the process's kernels, as it was loaded: an ELF file in the dump.
constexpr std::uint32_t code_image = 0x80000000 + 7;
constexpr std::string_view code_prefix = ".text.";
/// Kernels have longer names only on purpose.
constexpr std::size_t longest_name = 1024;
/// Section headers of all images together; a dump that is not made up has some hundreds.
constexpr std::size_t most_headers = std::size_t{1} << 20;

/// Names by the exceptions' numbers.
constexpr std::array<const char*, 23> exception_names = {
    "NONE",
    "LANE_ILLEGAL_ADDRESS",
    "LANE_USER_STACK_OVERFLOW",
    "DEVICE_HARDWARE_STACK_OVERFLOW",
    "WARP_ILLEGAL_INSTRUCTION",
    "WARP_OUT_OF_RANGE_ADDRESS",
    "WARP_MISALIGNED_ADDRESS",
    "WARP_INVALID_ADDRESS_SPACE",
    "WARP_INVALID_PC",
    "WARP_HARDWARE_STACK_OVERFLOW",
    "DEVICE_ILLEGAL_ADDRESS",
    "LANE_MISALIGNED_ADDRESS",
    "WARP_ASSERT",
    "LANE_SYSCALL_ERROR",
    "WARP_ILLEGAL_ADDRESS",
    "LANE_NONMIGRATABLE_ATOMSYS",
    "LANE_INVALID_ATOMSYS",
    "CLUSTER_OUT_OF_RANGE_ADDRESS",
    "CLUSTER_BLOCK_NOT_PRESENT",
    "WARP_STACK_CANARY",
    "WARP_TMEM_ACCESS_CHECK",
    "WARP_TMEM_LEAK",
    "WARP_CALL_REQUIRES_NEWER_DRIVER",
};

template <class Number>
Number number_at(Bytes bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

/// Empty: not all of it is there.
std::optional<Bytes> part_of(Bytes bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.subspan(at, size);
}

struct Section {
  std::uint32_t name = 0;
  std::uint32_t type = 0;
  Bytes content;
  std::size_t entry_bytes = 0;
};

/// Empty: it is outside of the dump.
std::optional<Section> section_at(Bytes dump, Bytes header) {
  Section section;
  section.name = number_at<std::uint32_t>(header, 0);
  section.type = number_at<std::uint32_t>(header, 4);
  section.entry_bytes = number_at<std::uint64_t>(header, 56);
  const auto content =
      part_of(dump, number_at<std::uint64_t>(header, 24), number_at<std::uint64_t>(header, 32));
  if (!content) return std::nullopt;
  section.content = *content;
  return section;
}

std::string type_name(std::uint32_t number) {
  const char* name = number < exception_names.size() ? exception_names[number] : "UNKNOWN";
  return std::string("CUDBG_EXCEPTION_") + name;
}

/// Reads a number: 3 for "sm" from ".cudbg.lntbl.dev0.sm3.cta1.wp7".
std::optional<std::uint32_t> number_after(std::string_view name, std::string_view label) {
  const std::size_t at = name.find(std::string(".") + std::string(label));
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(at + 1 + label.size());
  std::uint32_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::string_view text_at(Bytes names, std::uint32_t at) {
  if (at >= names.size()) return {};
  const std::size_t size = std::min(names.size() - at, longest_name);
  const std::string_view rest(reinterpret_cast<const char*>(names.data()) + at, size);
  return rest.substr(0, rest.find('\0'));
}

std::optional<fault::CoreDumpException> in_lanes(const Section& lanes, std::string_view name) {
  for (std::size_t at = 0; at + lanes.entry_bytes <= lanes.content.size(); at += lanes.entry_bytes) {
    const auto number = number_at<std::uint32_t>(lanes.content, at + lane_exception_at);
    if (number == 0) continue;
    fault::CoreDumpException found;
    found.type = type_name(number);
    found.sm = number_after(name, "sm");
    found.warp = number_after(name, "wp");
    found.program_counter = number_at<std::uint64_t>(lanes.content, at + lane_counter_at);
    return found;
  }
  return std::nullopt;
}

std::optional<fault::CoreDumpException> in_warps(const Section& warps, std::string_view name) {
  for (std::size_t at = 0; at + warps.entry_bytes <= warps.content.size(); at += warps.entry_bytes) {
    if (number_at<std::uint32_t>(warps.content, at + warp_is_broken_at) == 0) continue;
    fault::CoreDumpException found;
    found.type = trap_type;
    found.sm = number_after(name, "sm");
    found.warp = number_at<std::uint32_t>(warps.content, at + warp_number_at);
    return found;
  }
  return std::nullopt;
}

/// Names the tables beside one with a warp: ".cudbg.lntbl.dev0.sm3.cta1.wp" for ".cudbg.wptbl.dev0.sm3.cta1".
/// Empty: the name is another one.
std::string lanes_beside(std::string_view name) {
  constexpr std::string_view warps = ".cudbg.wptbl.";
  if (!name.starts_with(warps)) return {};
  return ".cudbg.lntbl." + std::string(name.substr(warps.size())) + ".wp";
}

struct SectionHeaders {
  Bytes headers;
  std::size_t names = 0;  ///< the number of the section with all names
};

struct HeaderTable {
  std::uint64_t at = 0;
  std::uint64_t count = 0;
  std::size_t names = 0;  ///< the number of the section with all names
};

std::uint64_t header_table_at(Bytes dump) { return number_at<std::uint64_t>(dump, 40); }

/// A dump of a full GPU has more sections than 16 bits count: the first header, which is of none, says how
/// many. Empty: it is needed, and not there.
std::optional<HeaderTable> header_table_of(Bytes dump) {
  HeaderTable table{header_table_at(dump), number_at<std::uint16_t>(dump, 60),
                    number_at<std::uint16_t>(dump, 62)};
  if (table.count != 0 && table.names != 0xffff) return table;
  const auto first = part_of(dump, table.at, section_bytes);
  if (!first) return std::nullopt;
  if (table.count == 0) table.count = number_at<std::uint64_t>(*first, 32);
  if (table.names == 0xffff) table.names = number_at<std::uint32_t>(*first, 40);
  return table;
}

/// Empty: not all of them are there.
std::optional<SectionHeaders> section_headers_in(Bytes dump) {
  const auto table = header_table_of(dump);
  if (!table || table->count > dump.size() / section_bytes) return std::nullopt;
  const auto headers = part_of(dump, table->at, table->count * section_bytes);
  if (!headers) return std::nullopt;
  return SectionHeaders{*headers, table->names};
}

Status is_dump(Bytes dump) {
  if (dump.size() < header_bytes) return fail(ErrorCode::Protocol, "shorter than an ELF header");
  constexpr std::array<unsigned char, 6> begin = {0x7f, 'E', 'L', 'F', 2, 1};
  if (std::memcmp(dump.data(), begin.data(), begin.size()) != 0)
    return fail(ErrorCode::Protocol, "no ELF file of 64 bits");
  if (number_at<std::uint16_t>(dump, 16) != elf_core || number_at<std::uint16_t>(dump, 18) != machine_cuda)
    return fail(ErrorCode::Protocol, "no core dump of a GPU");
  if (number_at<std::uint16_t>(dump, 58) != section_bytes)
    return fail(ErrorCode::Protocol, "its section headers have another size");
  return {};
}

/// Looks in the tables whose headers are these. Protocol: one is not as it should be.
Result<std::optional<fault::CoreDumpException>> own_exception_in_tables(Bytes dump,
                                                                        const SectionHeaders& all) {
  const std::size_t count = all.headers.size() / section_bytes;
  const auto header = [&](std::size_t number) {
    return all.headers.subspan(number * section_bytes, section_bytes);
  };
  const auto names = all.names < count ? section_at(dump, header(all.names)) : std::nullopt;
  std::optional<fault::CoreDumpException> trapped;
  std::string lanes_of_trapped;  ///< how the tables of its lanes are called; empty: not told
  // Tables do not overlap, where nobody wants to keep us busy.
  std::size_t left = dump.size();
  for (std::size_t number = 1; number < count; ++number) {
    const auto type = number_at<std::uint32_t>(header(number), 4);
    if (type != lane_table && type != warp_table) continue;
    const auto section = section_at(dump, header(number));
    const std::size_t least = type == lane_table ? lane_entry_min : warp_entry_min;
    if (!section || (section->entry_bytes < least && !section->content.empty()))
      return fail(ErrorCode::Protocol, "a table of it is not as it should be");
    if (section->content.size() > left) return fail(ErrorCode::Protocol, "its tables overlap");
    left -= section->content.size();
    if (section->content.empty()) continue;
    const std::string_view name = names ? text_at(names->content, section->name) : std::string_view();
    if (type == lane_table) {
      if (auto found = in_lanes(*section, name)) return found;
      const bool is_of_trapped = !lanes_of_trapped.empty() && name.starts_with(lanes_of_trapped);
      if (is_of_trapped && !trapped->program_counter && section->content.size() >= lane_entry_min)
        trapped->program_counter = number_at<std::uint64_t>(section->content, lane_counter_at);
    } else if (!trapped) {
      trapped = in_warps(*section, name);
      if (trapped && section->content.size() == section->entry_bytes) lanes_of_trapped = lanes_beside(name);
    }
  }
  return trapped;
}

bool has_section(const SectionHeaders& all, std::uint32_t type) {
  for (std::size_t at = 0; at + section_bytes <= all.headers.size(); at += section_bytes) {
    if (number_at<std::uint32_t>(all.headers.subspan(at, section_bytes), 4) == type) return true;
  }
  return false;
}

/// Looks in one image of code, at `left` headers at most.
std::string_view kernel_in(Bytes image, std::uint64_t counter, std::size_t& left) {
  if (image.size() < header_bytes || std::memcmp(image.data(), "\177ELF\2\1", 6) != 0) return {};
  const auto all = section_headers_in(image);
  if (!all) return {};
  const std::size_t count = all->headers.size() / section_bytes;
  if (all->names >= count || count > left) return {};
  left -= count;
  const auto header = [&](std::size_t number) {
    return all->headers.subspan(number * section_bytes, section_bytes);
  };
  const auto names = section_at(image, header(all->names));
  if (!names) return {};
  for (std::size_t number = 1; number < count; ++number) {
    const auto begin = number_at<std::uint64_t>(header(number), 16);
    const auto bytes = number_at<std::uint64_t>(header(number), 32);
    if (counter < begin || counter - begin >= bytes) continue;
    const std::string_view name = text_at(names->content, number_at<std::uint32_t>(header(number), 0));
    if (name.starts_with(code_prefix)) return name.substr(code_prefix.size());
  }
  return {};
}

/// Names the kernel of that code; empty: the dump does not tell. Printable, whatever the dump holds.
std::string kernel_at(Bytes dump, const SectionHeaders& all, std::uint64_t counter) {
  std::size_t left = most_headers;
  for (std::size_t at = 0; at + section_bytes <= all.headers.size(); at += section_bytes) {
    const Bytes header = all.headers.subspan(at, section_bytes);
    if (number_at<std::uint32_t>(header, 4) != code_image) continue;
    const auto image = section_at(dump, header);
    std::string name(image ? kernel_in(image->content, counter, left) : std::string_view());
    std::ranges::replace_if(
        name, [](char c) { return c <= ' ' || c > '~'; }, '?');
    if (!name.empty()) return name;
  }
  return {};
}

}  // namespace

Result<std::optional<fault::CoreDumpException>> own_exception_in(Bytes dump) {
  if (auto good = is_dump(dump); !good) return propagate(good);
  const auto all = section_headers_in(dump);
  if (!all) return fail(ErrorCode::Protocol, "it is cut short");
  auto found = own_exception_in_tables(dump, *all);
  if (found && !*found && !has_section(*all, sm_table))
    return fail(ErrorCode::Protocol, "it says nothing of any multiprocessor");
  if (found && *found && (*found)->program_counter)
    (*found)->kernel = kernel_at(dump, *all, *(*found)->program_counter);
  return found;
}

std::optional<fault::CoreDumpException> own_exception_in_beginning(Bytes dump) {
  if (!is_dump(dump)) return std::nullopt;
  const auto table = header_table_of(dump);
  if (!table || table->at > dump.size()) return std::nullopt;
  const std::size_t there = (dump.size() - table->at) / section_bytes;
  const std::size_t count = std::min<std::uint64_t>(there, table->count);
  const auto found =
      own_exception_in_tables(dump, {dump.subspan(table->at, count * section_bytes), table->names});
  return found ? *found : std::nullopt;
}

DumpLength length_of_dump(Bytes beginning) {
  if (beginning.size() < header_bytes) return {false, header_bytes};
  if (!is_dump(beginning)) return {};
  constexpr std::uint64_t longest = std::uint64_t{1} << 48;
  if (header_table_at(beginning) > longest) return {};
  const auto table = header_table_of(beginning);
  if (!table) return {false, header_table_at(beginning) + section_bytes};
  if (table->count > longest / section_bytes) return {};
  return {true, table->at + table->count * section_bytes};
}

}  // namespace firebreak::park
