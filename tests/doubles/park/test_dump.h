// SPDX-License-Identifier: Apache-2.0
/// GPU core dumps put together for tests, in the form that 42 dumps of an H100 have (driver 580).
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace firebreak::park::test {

inline constexpr std::uint32_t sm_table = 11;
inline constexpr std::uint32_t warp_table = 14;
inline constexpr std::uint32_t lane_table = 15;

struct TestSection {
  std::string name;
  std::uint32_t type = 0;  ///< beyond SHT_LOUSER
  std::uint64_t entry_bytes = 0;
  std::string content = {};
};

template <class Number>
void put(std::string& into, std::size_t at, Number number) {
  if (into.size() < at + sizeof(number)) into.resize(at + sizeof(number));
  std::memcpy(into.data() + at, &number, sizeof(number));
}

/// As the driver writes it: the section headers come last. `counts_apart`: as where 16 bits do not count
/// them.
inline std::string dump_of(const std::vector<TestSection>& sections, bool counts_apart = false) {
  std::string file(64, '\0');
  std::string names(1, '\0');
  std::string headers(64, '\0');
  const auto add = [&](const TestSection& section, const std::string& content) {
    std::string header(64, '\0');
    put(header, 0, static_cast<std::uint32_t>(names.size()));
    put(header, 4, section.type == 0 ? 3U : 0x80000000U + section.type);
    put(header, 24, std::uint64_t{file.size()});
    names += section.name + '\0';
    put(header, 32, std::uint64_t{section.type == 0 ? names.size() : content.size()});
    put(header, 56, section.entry_bytes);
    headers += header;
    file += section.type == 0 ? names : content;
  };
  for (const TestSection& section : sections) add(section, section.content);
  add({".shstrtab"}, {});
  const std::uint16_t count = static_cast<std::uint16_t>(headers.size() / 64);
  std::memcpy(file.data(), "\177ELF\2\1\1\63\7", 9);
  put(file, 16, std::uint16_t{4});
  put(file, 18, std::uint16_t{190});
  put(file, 40, std::uint64_t{file.size()});
  put(file, 58, std::uint16_t{64});
  put(file, 60, counts_apart ? std::uint16_t{0} : count);
  put(file, 62, counts_apart ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(count - 1));
  if (counts_apart) {
    put(headers, 32, std::uint64_t{count});
    put(headers, 40, std::uint32_t{count} - 1);
  }
  return file + headers;
}

/// What stands in the dumps of all clients of the domain.
inline TestSection sms(std::uint32_t exception) {
  std::string table(132 * 48, '\0');
  put(table, 128 * 48, std::uint32_t{128});
  put(table, 128 * 48 + 8, exception);
  put(table, 128 * 48 + 12, 1U);
  return {".cudbg.smtbl.dev0", sm_table, 48, table};
}

/// Empty tables follow that of the SM with a block, one for each SM after it (3 dumps of an H100).
inline std::vector<TestSection> with_sms_after(std::vector<TestSection> sections, int sm = 3) {
  constexpr std::uint32_t block_table = 13;
  while (++sm < 132) sections.push_back({".cudbg.ctatbl.dev0.sm" + std::to_string(sm), block_table, 56});
  return sections;
}

inline TestSection warps(std::uint32_t number, bool is_broken) {
  std::string table(64, '\0');
  put(table, 8, number);
  put(table, 12, 1U);
  put(table, 20, is_broken ? 1U : 0U);
  return {".cudbg.wptbl.dev0.sm3.cta0", warp_table, 64, table};
}

inline TestSection lanes(std::uint32_t exception) {
  std::string table(2 * 56, '\0');
  put(table, 56, std::uint64_t{0x7f00dead0050});
  put(table, 56 + 32, exception);
  return {".cudbg.lntbl.dev0.sm3.cta0.wp2", lane_table, 56, table};
}

/// The code of one kernel, as it was loaded.
inline TestSection code(const std::string& kernel, std::uint64_t begin, std::uint64_t bytes) {
  std::string image = dump_of({{".text." + kernel, 1, 0, "code"}});
  const std::size_t headers = image.size() - std::size_t{3} * 64;
  put(image, 16, std::uint16_t{2});
  put(image, headers + 64 + 16, begin);
  put(image, headers + 64 + 32, bytes);
  return {".cudbg.relfimg.dev0.ctx0", 7, 0, image};
}

}  // namespace firebreak::park::test
