// SPDX-License-Identifier: Apache-2.0
/// The kernels of plain_program.cpp, as text and as what nvcc makes of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <string>

namespace firebreak::test {

/// `steps` is a variable of the code: how often `step` ran. `step` does with every word what cannot be done
/// twice unnoticed. `spin` ends once somebody
/// stores 1 to its second word, and says so in its third; `fault` strays. `factor` is a constant: the host
/// alone writes it, by its address.
inline constexpr const char* ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .global .align 4 .u32 steps = 0;
.visible .const .align 4 .b8 factor[8];

.visible .entry step(.param .u64 words, .param .u32 count)
{
  .reg .u64 %p, %a;
  .reg .u32 %i, %x, %n;
  .reg .pred %more, %first;
  ld.param.u64 %p, [words];
  ld.param.u32 %n, [count];
  mov.u64 %a, steps;
  ld.global.u32 %x, [%a];
  add.u32 %x, %x, 1;
  st.global.u32 [%a], %x;
  mov.u32 %i, 0;
again:
  ld.global.u32 %x, [%p];
  mad.lo.u32 %x, %x, 1664525, %i;
  add.u32 %x, %x, 1013904223;
  st.global.u32 [%p], %x;
  add.u64 %p, %p, 4;
  add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, %n;
  @%more bra again;
  ret;
}

.visible .entry how_many(.param .u64 words)
{
  .reg .u64 %p, %a;
  .reg .u32 %x;
  ld.param.u64 %p, [words];
  mov.u64 %a, steps;
  ld.global.u32 %x, [%a];
  st.global.u32 [%p], %x;
  ret;
}

.visible .entry what_factor(.param .u64 words)
{
  .reg .u64 %p;
  .reg .u32 %x;
  ld.param.u64 %p, [words];
  ld.const.u32 %x, [factor+4];
  st.global.u32 [%p], %x;
  ret;
}

.visible .entry nothing(.param .u64 words)
{
  ret;
}

.visible .entry spin(.param .u64 words)
{
  .reg .u64 %p;
  .reg .u32 %x;
  .reg .pred %more;
  ld.param.u64 %p, [words];
again:
  ld.volatile.global.u32 %x, [%p+4];
  setp.ne.u32 %more, %x, 1;
  @%more bra again;
  st.volatile.global.u32 [%p+8], 1;
  ret;
}

.visible .entry stray(.param .u64 words)
{
  .reg .u64 %p;
  ld.param.u64 %p, [words];
  st.volatile.global.u32 [%p], 1;
  ret;
}

.visible .entry fault(.param .u64 words)
{
  .reg .u64 %p;
  .reg .u32 %x;
  ld.param.u64 %p, [words];
  ld.volatile.global.u32 %x, [%p+1];
  ret;
}
)";

/// `store_address` keeps the address of `steps` in memory, and `use_stored` counts there.
inline constexpr const char* storing = R"(
.visible .entry store_address(.param .u64 words)
{
  .reg .u64 %p, %a;
  ld.param.u64 %p, [words];
  mov.u64 %a, steps;
  st.global.u64 [%p], %a;
  ret;
}

.visible .entry use_stored(.param .u64 words)
{
  .reg .u64 %p, %a;
  .reg .u32 %x;
  ld.param.u64 %p, [words];
  ld.global.u64 %a, [%p];
  ld.global.u32 %x, [%a];
  add.u32 %x, %x, 1;
  st.global.u32 [%a], %x;
  ret;
}
)";

/// What kernels that allocate memory declare.
inline constexpr const char* allocating = ".extern .func (.param .b64 result) malloc (.param .b64 bytes);\n";

/// The same code without a variable.
inline std::string without_variables() {
  std::istringstream lines(ptx);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const bool is_of_variable =
        line.find("steps") != std::string::npos || line.find("[%a]") != std::string::npos;
    if (!is_of_variable) kept += line + "\n";
  }
  return kept;
}

/// Bytes of each of the variables of code_with_blocks().
inline constexpr std::array<std::size_t, 3> large_variable_bytes{std::size_t{6} << 20, std::size_t{6} << 20,
                                                                 std::size_t{6} << 20};

/// Code with variables that are larger than what most programs have. `fill_blocks` stores a number at both
/// ends of each, `sum_blocks` adds up what is there.
inline std::string code_with_blocks() {
  std::string variables, fill, sum;
  for (std::size_t i = 0; i < large_variable_bytes.size(); ++i) {
    const std::string name = "block" + std::to_string(i);
    const std::string last = "[" + name + "+" + std::to_string(large_variable_bytes[i] - 4) + "]";
    variables +=
        ".visible .global .align 16 .b8 " + name + "[" + std::to_string(large_variable_bytes[i]) + "];\n";
    fill += "st.global.u32 [" + name + "],%v; st.global.u32 " + last + ",%v;\n";
    sum += "ld.global.u32 %w,[" + name + "]; add.u32 %v,%v,%w; ld.global.u32 %w," + last +
           "; add.u32 %v,%v,%w;\n";
  }
  return ".version 7.0\n.target sm_70\n.address_size 64\n" + variables +
         ".visible .entry fill_blocks(.param .u64 words){ .reg .b32 %v; .reg .b64 %a; ld.param.u64 "
         "%a,[words]; "
         "ld.global.u32 %v,[%a];\n" +
         fill +
         "ret; }\n.visible .entry sum_blocks(.param .u64 words){ .reg .b32 %v; .reg .b32 %w; .reg .b64 %a; "
         "ld.param.u64 %a,[words]; mov.u32 %v,0;\n" +
         sum + "st.global.u32 [%a],%v; ret; }\n";
}

/// The code as nvcc would put it into a program: a fat binary, with PTX for these compute capabilities in it,
/// times ten.
inline std::string fat_binary(const std::string& text,
                              std::initializer_list<std::uint32_t> capabilities = {70}) {
  const std::string payload = text + std::string(8 - text.size() % 8, '\0');
  struct {
    std::uint32_t magic = 0xBA55ED50;
    std::uint16_t version = 1;
    std::uint16_t header_bytes = 16;
    std::uint64_t content_bytes = 0;
  } all;
  struct {
    std::uint16_t kind = 1;
    std::uint16_t entry_version = 0x101;
    std::uint32_t entry_header_bytes = 64;
    std::uint64_t payload_bytes = 0;
    std::array<std::uint32_t, 3> not_compressed{};
    std::uint32_t arch = 0;
    std::uint64_t name = 0;
    std::uint64_t flags = 0x11;
    std::array<std::uint64_t, 2> rest{};
  } header;
  header.payload_bytes = payload.size();
  std::string entries;
  for (const std::uint32_t capability : capabilities) {
    header.arch = capability;
    entries += std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
  }
  all.content_bytes = entries.size();
  return std::string(reinterpret_cast<const char*>(&all), sizeof all) + entries;
}

}  // namespace firebreak::test
