// SPDX-License-Identifier: Apache-2.0
#include "workloads/common/more_memory.h"

#include <fmt/format.h>

#include "ground/base/units.h"
#include "program/cuda/copy.h"

namespace firebreak::workloads {
namespace {

std::uint32_t word_of(std::size_t number) { return 0xf17eb000U + static_cast<std::uint32_t>(number); }

}  // namespace

Status MoreMemory::allocate(Memory& memory, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto address = memory.allocate(fmt::format("more-{}", i), 2 * mib);
    if (!address) return propagate(address);
    addresses_.push_back(*address);
  }
  return {};
}

Status MoreMemory::mark(const Gpu& gpu) const {
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    if (auto filled = cuda::fill_words(gpu.driver(), addresses_[i], word_of(i), 1); !filled) return filled;
  }
  return {};
}

Status MoreMemory::check(const Gpu& gpu) const {
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    std::uint32_t word = 0;
    auto read = cuda::copy_to_host(gpu.driver(), std::as_writable_bytes(std::span(&word, 1)), addresses_[i]);
    if (!read) return read;
    if (word != word_of(i))
      return fail(ErrorCode::Protocol, fmt::format("more-{} holds {:08x}, not {:08x}", i, word, word_of(i)));
  }
  return {};
}

}  // namespace firebreak::workloads
