// SPDX-License-Identifier: Apache-2.0
#include "redo/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace firebreak::redo {

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t sequence) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), sequence);
}

}  // namespace firebreak::redo
