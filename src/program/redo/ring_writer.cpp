// SPDX-License-Identifier: Apache-2.0
#include "program/redo/ring_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "program/redo/record.h"

namespace firebreak::redo {
namespace {

constexpr std::size_t record_bytes_max =
    sizeof(abi::RedoRecord) + sizeof(abi::RedoBody) + abi::redo_payload_max + abi::redo_unit_bytes;

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

std::optional<RingWriter> RingWriter::make(std::span<std::byte> memory) {
  if (memory.size() < sizeof(abi::RedoRing) + abi::redo_capacity_min) return std::nullopt;
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(abi::RedoRing) != 0) return std::nullopt;
  const std::uint64_t capacity_bytes = memory.size() - sizeof(abi::RedoRing);
  if (!std::has_single_bit(capacity_bytes)) return std::nullopt;
  auto* const ring = new (memory.data()) abi::RedoRing{};
  ring->version = abi::redo_ring_version;
  ring->capacity_bytes = capacity_bytes;
  ring->magic = abi::redo_ring_magic;
  return RingWriter(*ring, memory.data() + sizeof(abi::RedoRing));
}

void RingWriter::write(abi::RedoKind kind, abi::RedoCause cause, std::uint64_t stream,
                       std::span<const std::byte> body, std::span<const std::byte> payload) {
  alignas(abi::redo_unit_bytes) std::byte buffer[record_bytes_max];
  // Nobody gives more: what is cut here says of itself that it cannot be done again.
  const bool is_cut = payload.size() > abi::redo_payload_max;
  if (is_cut) {
    kind = abi::RedoKind::CannotRedo;
    cause = abi::RedoCause::Unknown;
    body = payload = {};
  }
  const std::size_t content = sizeof(abi::RedoRecord) + body.size() + payload.size();
  const std::uint64_t at = ring_->next_bytes.fetch_add(whole_units(content), std::memory_order_relaxed);
  abi::RedoRecord record{};
  record.sequence = sequence_at_byte(at);
  record.size_bytes = static_cast<std::uint32_t>(content);
  record.kind = kind;
  record.cause = cause;
  record.stream = stream;
  std::memcpy(buffer, &record, sizeof(record));
  if (!body.empty()) std::memcpy(buffer + sizeof(record), body.data(), body.size());
  if (!payload.empty()) std::memcpy(buffer + sizeof(record) + body.size(), payload.data(), payload.size());
  record.checksum = checksum_of({buffer, content}, record.sequence);
  std::memcpy(buffer, &record, sizeof(record));
  const std::uint64_t place = at & (ring_->capacity_bytes - 1);
  const std::size_t first = std::min<std::uint64_t>(content, ring_->capacity_bytes - place);
  constexpr std::size_t sequence_bytes = sizeof(record.sequence);
  std::memcpy(data_ + place + sequence_bytes, buffer + sequence_bytes, first - sequence_bytes);
  std::memcpy(data_, buffer + first, content - first);
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(data_ + place))
      .store(record.sequence, std::memory_order_release);
}

void RingWriter::launch(std::uint64_t stream, const abi::RedoLaunch& launch,
                        std::span<const std::byte> parameters) {
  write(abi::RedoKind::Launch, abi::RedoCause::None, stream, bytes_of(launch), parameters);
}

void RingWriter::copy(std::uint64_t stream, const abi::RedoCopy& copy) {
  write(abi::RedoKind::Copy, abi::RedoCause::None, stream, bytes_of(copy), {});
}

void RingWriter::fill(std::uint64_t stream, const abi::RedoFill& fill) {
  write(abi::RedoKind::Fill, abi::RedoCause::None, stream, bytes_of(fill), {});
}

void RingWriter::upload(std::uint64_t stream, const abi::RedoUpload& upload,
                        std::span<const std::byte> bytes) {
  write(abi::RedoKind::Upload, abi::RedoCause::None, stream, bytes_of(upload), bytes);
}

void RingWriter::graph(std::uint64_t stream, const abi::RedoGraph& graph) {
  write(abi::RedoKind::Graph, abi::RedoCause::None, stream, bytes_of(graph), {});
}

void RingWriter::record_event(std::uint64_t stream, std::uint64_t event) {
  write(abi::RedoKind::EventRecord, abi::RedoCause::None, stream, bytes_of(abi::RedoEvent{event}), {});
}

void RingWriter::wait_for_event(std::uint64_t stream, std::uint64_t event) {
  write(abi::RedoKind::EventWait, abi::RedoCause::None, stream, bytes_of(abi::RedoEvent{event}), {});
}

void RingWriter::save(std::uint64_t stream, const abi::RedoSave& save) {
  write(abi::RedoKind::Save, abi::RedoCause::None, stream, bytes_of(save), {});
}

void RingWriter::start_region(std::uint64_t stream, const abi::RedoMark& before) {
  write(abi::RedoKind::RegionStart, abi::RedoCause::None, stream, bytes_of(abi::RedoRegionStart{before}), {});
}

void RingWriter::cannot_redo(std::uint64_t stream, abi::RedoCause cause) {
  write(abi::RedoKind::CannotRedo, cause, stream, {}, {});
}

}  // namespace firebreak::redo
