// SPDX-License-Identifier: Apache-2.0
/// The agreement of a ring's writer and its readers, beside the layout (shared/abi/redo_ring.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ground/base/units.h"
#include "shared/abi/redo_ring.h"

namespace firebreak::redo {

/// Returns the sequence of a record that begins there, counted since the ring was made.
constexpr std::uint64_t sequence_at_byte(std::uint64_t at_bytes) {
  return at_bytes / abi::redo_unit_bytes + 1;
}

/// Returns what a record takes in the ring.
constexpr std::uint64_t whole_units(std::uint64_t record_bytes) {
  return round_up(record_bytes, abi::redo_unit_bytes);
}

/// Returns the checksum of abi::RedoRecord::size_bytes and all behind it, in a whole record.
std::uint64_t checksum_of(std::span<const std::byte> record, std::uint64_t sequence);

}  // namespace firebreak::redo
