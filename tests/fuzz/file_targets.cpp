// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "agent/parking/park/core_dump_file.h"
#include "kernels/fatbin/container.h"
#include "kernels/fatbin/cubin.h"
#include "kernels/fatbin/describe.h"
#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

constexpr std::uint64_t most_unpacked_bytes = std::uint64_t{1} << 20;

bool lies_within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

/// Whatever a whole dump tells, its beginning does not name another.
void read_core_dump(std::string_view bytes) {
  const auto dump = std::as_bytes(std::span(bytes));
  const auto whole = park::own_exception_in(dump);
  const auto beginning = park::own_exception_in_beginning(dump);
  (void)park::length_of_dump(dump);
  if (!whole || !*whole || !beginning) return;
  require((*whole)->type == beginning->type, "the whole and what has come of it name one exception");
}

void read_fat_binary(std::string_view bytes) {
  (void)fatbin::describe(bytes);
  (void)fatbin::code_of_cubin(bytes);
  const auto size = fatbin::fat_binary_bytes(bytes);
  if (size) require(*size <= bytes.size(), "it ends within the file");
  if (const auto all = fatbin::fat_binaries_in(bytes)) {
    for (const std::string_view each : *all)
      require(lies_within(each, bytes), "each lies within the section");
  }
  const auto entries = fatbin::entries_of(bytes);
  if (!entries) return;
  for (const fatbin::CodeEntry& entry : *entries) {
    require(lies_within(entry.payload, bytes), "what an entry holds lies within the file");
    const auto unpacked = fatbin::unpack(entry, most_unpacked_bytes);
    if (unpacked)
      require(unpacked->bytes.size() <= most_unpacked_bytes, "no more is unpacked than was asked for");
  }
}

}  // namespace firebreak::fuzz
