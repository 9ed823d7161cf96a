// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/kmsg_ring.h"

#include <algorithm>
#include <cstring>

namespace firebreak::softgpu {

void KmsgRing::post(std::int64_t due_ns, std::string_view text) {
  Record record;
  record.due_ns = due_ns;
  record.length_bytes = std::min(text.size(), text_bytes_max);
  std::memcpy(record.text.data(), text.data(), record.length_bytes);
  ring_.post(record);
}

std::optional<KmsgLine> KmsgRing::read(std::uint64_t sequence) const {
  const auto record = ring_.read(sequence);
  if (!record) return std::nullopt;
  const auto length_bytes = std::min<std::size_t>(record->length_bytes, text_bytes_max);
  return KmsgLine{record->due_ns, std::string(record->text.data(), length_bytes)};
}

}  // namespace firebreak::softgpu
