// SPDX-License-Identifier: Apache-2.0
/// What the writer of a ring and its readers agree on, beside the layout (shared/abi/redo_ring.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ground/base/units.h"
#include "shared/abi/redo_ring.h"

namespace firebreak::redo {

/// Of a record that begins there, counted since the ring was made.
constexpr std::uint64_t sequence_at_byte(std::uint64_t at_bytes) {
  return at_bytes / abi::redo_unit_bytes + 1;
}

/// What a record takes in the ring.
constexpr std::uint64_t whole_units(std::uint64_t record_bytes) {
  return round_up(record_bytes, abi::redo_unit_bytes);
}

/// Of abi::RedoRecord::size_bytes and all behind it, in a whole record.
std::uint64_t checksum_of(std::span<const std::byte> record, std::uint64_t sequence);

}  // namespace firebreak::redo
