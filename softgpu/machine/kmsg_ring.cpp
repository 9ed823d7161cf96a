// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/kmsg_ring.h"

#include <algorithm>
#include <cstring>

namespace firebreak::softgpu {

void KmsgRing::post(std::int64_t due_ns, std::string_view text) {
  const std::uint64_t sequence = next_sequence_.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = slots_[sequence % capacity];
  const std::size_t length_bytes = std::min(text.size(), text_bytes_max);
  slot.published.store(0, std::memory_order_release);
  slot.due_ns.store(due_ns, std::memory_order_release);
  slot.length_bytes.store(length_bytes, std::memory_order_release);
  for (std::size_t offset = 0; offset < length_bytes; offset += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + offset, std::min(sizeof(word), length_bytes - offset));
    slot.words[offset / sizeof(word)].store(word, std::memory_order_release);
  }
  slot.published.store(sequence + 1, std::memory_order_release);
}

std::uint64_t KmsgRing::oldest_sequence() const {
  const std::uint64_t next = next_sequence();
  return next > capacity ? next - capacity : 0;
}

std::optional<KmsgLine> KmsgRing::read(std::uint64_t sequence) const {
  const Slot& slot = slots_[sequence % capacity];
  if (slot.published.load(std::memory_order_acquire) != sequence + 1) return std::nullopt;
  KmsgLine line;
  line.due_ns = slot.due_ns.load(std::memory_order_acquire);
  const std::size_t length_bytes =
      std::min<std::size_t>(slot.length_bytes.load(std::memory_order_acquire), text_bytes_max);
  line.text.resize(length_bytes);
  for (std::size_t offset = 0; offset < length_bytes; offset += sizeof(std::uint64_t)) {
    const std::uint64_t word = slot.words[offset / sizeof(std::uint64_t)].load(std::memory_order_acquire);
    std::memcpy(line.text.data() + offset, &word, std::min(sizeof(word), length_bytes - offset));
  }
  if (slot.published.load(std::memory_order_acquire) != sequence + 1) return std::nullopt;
  return line;
}

}  // namespace firebreak::softgpu
