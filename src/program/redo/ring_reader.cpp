// SPDX-License-Identifier: Apache-2.0
#include "program/redo/ring_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "program/redo/record.h"

namespace firebreak::redo {
namespace {

// How many bytes the body has; nothing: there is no such kind.
std::optional<std::size_t> body_bytes(abi::RedoKind kind) {
  switch (kind) {
    case abi::RedoKind::Launch:
      return sizeof(abi::RedoLaunch);
    case abi::RedoKind::Copy:
      return sizeof(abi::RedoCopy);
    case abi::RedoKind::Fill:
      return sizeof(abi::RedoFill);
    case abi::RedoKind::Upload:
      return sizeof(abi::RedoUpload);
    case abi::RedoKind::Graph:
      return sizeof(abi::RedoGraph);
    case abi::RedoKind::EventRecord:
    case abi::RedoKind::EventWait:
      return sizeof(abi::RedoEvent);
    case abi::RedoKind::Save:
      return sizeof(abi::RedoSave);
    case abi::RedoKind::RegionStart:
      return sizeof(abi::RedoRegionStart);
    case abi::RedoKind::CannotRedo:
      return 0;
  }
  return std::nullopt;
}

bool is_upload_whole(const RedoEntry& entry) {
  const abi::RedoArea& to = entry.body.upload.to;
  if (to.width_bytes > abi::redo_payload_max || to.rows > abi::redo_payload_max) return false;
  return to.width_bytes * to.rows == entry.payload_bytes;
}

bool is_sound(const RedoEntry& entry) {
  const std::uint32_t value_bytes = entry.body.fill.value_bytes;
  switch (entry.kind) {
    case abi::RedoKind::Launch:
      return true;
    case abi::RedoKind::Upload:
      return is_upload_whole(entry);
    case abi::RedoKind::Fill:
      return entry.payload_bytes == 0 && (value_bytes == 1 || value_bytes == 2 || value_bytes == 4);
    case abi::RedoKind::Save:
      return entry.payload_bytes == 0 && entry.body.save.done.count < abi::redo_counts_max;
    case abi::RedoKind::RegionStart:
      return entry.payload_bytes == 0 && entry.body.region.before.count < abi::redo_counts_max;
    default:
      return entry.payload_bytes == 0;
  }
}

class RingReader {
 public:
  RingReader(std::span<const std::byte> data, std::uint64_t next_bytes)
      : data_(data), next_bytes_(next_bytes) {}

  void run(RedoLog& log) {
    log.is_cut = next_bytes_ > data_.size();
    std::uint64_t at = log.is_cut ? next_bytes_ - data_.size() : 0;
    bool is_searching = log.is_cut;  // the log may begin in the middle of a record
    while (at < next_bytes_) {
      if (const std::uint64_t size = read_record(at, log); size != 0) {
        log.has_gap = log.has_gap || (is_searching && log.entries.size() > 1);
        is_searching = false;
        at += size;
        continue;
      }
      // A record has to begin here. One whose number is there was written to its end.
      if (!is_searching) log.has_gap = log.has_gap || sequence_at(at) == sequence_at_byte(at);
      is_searching = true;
      at += abi::redo_unit_bytes;
    }
  }

 private:
  void copy_out(std::uint64_t at, std::byte* to, std::size_t count) const {
    const std::size_t place = at & (data_.size() - 1);
    const std::size_t first = std::min(count, data_.size() - place);
    std::memcpy(to, data_.data() + place, first);
    std::memcpy(to + first, data_.data(), count - first);
  }

  std::uint64_t sequence_at(std::uint64_t at) const {
    std::uint64_t sequence = 0;
    copy_out(at, reinterpret_cast<std::byte*>(&sequence), sizeof(sequence));
    return sequence;
  }

  // How many bytes it takes in the ring; 0: there is none.
  std::uint64_t read_record(std::uint64_t at, RedoLog& log) {
    abi::RedoRecord record{};
    copy_out(at, reinterpret_cast<std::byte*>(&record), sizeof(record));
    if (record.sequence != sequence_at_byte(at)) return 0;
    const auto body = body_bytes(record.kind);
    if (!body || record.size_bytes < sizeof(record) + *body) return 0;
    const std::size_t payload = record.size_bytes - sizeof(record) - *body;
    const std::uint64_t whole = whole_units(record.size_bytes);
    if (payload > abi::redo_payload_max || whole > next_bytes_ - at) return 0;
    buffer_.resize(record.size_bytes);
    copy_out(at, buffer_.data(), buffer_.size());
    if (checksum_of(buffer_, record.sequence) != record.checksum) return 0;
    RedoEntry entry;
    entry.sequence = record.sequence;
    entry.kind = record.kind;
    entry.cause = record.cause;
    entry.stream = record.stream;
    entry.payload_at = log.payloads.size();
    entry.payload_bytes = payload;
    std::memcpy(&entry.body, buffer_.data() + sizeof(record), *body);
    if (!is_sound(entry)) return 0;
    log.payloads.insert(log.payloads.end(), buffer_.end() - static_cast<std::ptrdiff_t>(payload),
                        buffer_.end());
    log.entries.push_back(entry);
    return whole;
  }

  std::span<const std::byte> data_;
  std::uint64_t next_bytes_;
  std::vector<std::byte> buffer_;
};

}  // namespace

Result<RedoLog> read_ring(std::span<const std::byte> file) {
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, file.data() + at, sizeof(value));
    return value;
  };
  if (file.size() <= sizeof(abi::RedoRing)) return fail(ErrorCode::Protocol, "the ring is cut off");
  const std::uint64_t start = word(offsetof(abi::RedoRing, magic));
  if (start != (std::uint64_t{abi::redo_ring_version} << 32 | abi::redo_ring_magic))
    return fail(ErrorCode::Protocol, "it is no ring of this version");
  const std::size_t capacity_bytes = file.size() - sizeof(abi::RedoRing);
  if (word(offsetof(abi::RedoRing, capacity_bytes)) != capacity_bytes ||
      !std::has_single_bit(capacity_bytes) || capacity_bytes < abi::redo_capacity_min)
    return fail(ErrorCode::Protocol, "the ring has another size than it says");
  const std::uint64_t next_bytes = word(offsetof(abi::RedoRing, next_bytes));
  if (next_bytes % abi::redo_unit_bytes != 0)
    return fail(ErrorCode::Protocol, "the ring's end is in the middle of a unit");
  RedoLog log;
  for (std::size_t i = 0; i < log.completed.size(); ++i)
    log.completed[i] = word(offsetof(abi::RedoRing, completed) + i * sizeof(std::uint64_t));
  RingReader(file.subspan(sizeof(abi::RedoRing)), next_bytes).run(log);
  return log;
}

}  // namespace firebreak::redo
