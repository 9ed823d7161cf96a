// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace firebreak::redo {

/// Of abi::RedoRecord::size_bytes and all behind it.
std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t sequence);

}  // namespace firebreak::redo
