// SPDX-License-Identifier: Apache-2.0
#include "program/journal/commit_checksum.h"

#include "ground/base/hash.h"

namespace firebreak::journal {
namespace {

std::uint64_t never_zero(std::uint64_t hash) { return hash == 0 ? 1 : hash; }

std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

std::uint64_t checksum_of(const abi::JournalEntry& entry, std::span<const std::byte> payload) {
  const std::uint64_t header = XXH3_64bits(&entry, offsetof(abi::JournalEntry, checksum));
  return never_zero(hash_of(payload, header));
}

std::uint64_t checksum_of(const abi::ImageMark& mark) {
  return never_zero(XXH3_64bits(&mark, offsetof(abi::ImageMark, checksum)));
}

std::uint64_t checksum_of(const BlockPlace& place, std::span<const std::byte> content) {
  return never_zero(hash_of(content, XXH3_64bits(&place, sizeof place)));
}

}  // namespace firebreak::journal
