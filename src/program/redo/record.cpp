// SPDX-License-Identifier: Apache-2.0
#include "program/redo/record.h"

#include "ground/base/hash.h"

namespace firebreak::redo {

std::uint64_t checksum_of(std::span<const std::byte> record, std::uint64_t sequence) {
  const std::span<const std::byte> covered = record.subspan(offsetof(abi::RedoRecord, size_bytes));
  return XXH3_64bits_withSeed(covered.data(), covered.size(), sequence);
}

}  // namespace firebreak::redo
