// SPDX-License-Identifier: Apache-2.0
#include "program/journal/image_marks.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "program/journal/commit_checksum.h"

namespace firebreak::journal {
namespace {

bool is_valid(const abi::ImageMark& mark) {
  return mark.checksum == checksum_of(mark) && mark.state_bytes <= abi::state_bytes_max;
}

bool is_newer(const abi::ImageMark& left, const abi::ImageMark& right) {
  return left.epoch != right.epoch ? left.epoch > right.epoch : left.next_step > right.next_step;
}

bool is_blank(const abi::ImageMark& mark) {
  const auto bytes = std::as_bytes(std::span(&mark, 1));
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

MarksFound read_marks(const abi::CommitJournal& journal) {
  abi::ImageMark marks[2];
  std::memcpy(marks, journal.marks, sizeof marks);
  MarksFound found;
  for (unsigned int slot = 0; slot < 2; ++slot) {
    found.has_blank |= is_blank(marks[slot]);
    if (!is_valid(marks[slot]) || (found.newest && !is_newer(marks[slot], *found.newest))) continue;
    found.newest = marks[slot];
    found.free_slot = slot ^ 1;
  }
  return found;
}

}  // namespace firebreak::journal
