// SPDX-License-Identifier: Apache-2.0
#include "program/journal/commit_entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "ground/base/units.h"

namespace firebreak::journal {
namespace {

constexpr std::size_t padding = 8;

Status check_whole(std::span<const std::byte> state) {
  if (state.size() <= abi::state_bytes_max) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("{} bytes of forward state; {} is the most", state.size(), abi::state_bytes_max));
}

Status check_changes(std::span<const fb_change> changes) {
  std::size_t payload = 0;
  for (const fb_change& change : changes) {
    if (change.bytes == nullptr && change.size_bytes > 0)
      return fail(ErrorCode::InvalidArgument, "a change without bytes");
    if (change.offset > abi::state_bytes_max || change.size_bytes > abi::state_bytes_max - change.offset) {
      return fail(ErrorCode::InvalidArgument,
                  fmt::format("a change of {} bytes at {}; the forward state has at most {}",
                              change.size_bytes, change.offset, abi::state_bytes_max));
    }
    payload += sizeof(abi::ChangeHeader) + round_up(change.size_bytes, padding);
    if (payload > abi::payload_bytes_max) {
      return fail(ErrorCode::InvalidArgument, fmt::format("changes of more than {} bytes in one commit, with "
                                                          "{} for each change",
                                                          abi::payload_bytes_max, sizeof(abi::ChangeHeader)));
    }
  }
  return {};
}

}  // namespace

Status check(const NewState& state) {
  return state.kind == abi::EntryKind::Whole ? check_whole(state.whole) : check_changes(state.changes);
}

std::size_t payload_bytes_of(const NewState& state) {
  if (state.kind == abi::EntryKind::Whole) return state.whole.size();
  std::size_t bytes = 0;
  for (const fb_change& change : state.changes) {
    bytes += sizeof(abi::ChangeHeader) + round_up(change.size_bytes, padding);
  }
  return bytes;
}

void write_payload(const NewState& state, std::span<std::byte> payload) {
  std::byte* next = payload.data();
  if (state.kind == abi::EntryKind::Whole) {
    if (!state.whole.empty()) std::memcpy(next, state.whole.data(), state.whole.size());
    return;
  }
  for (const fb_change& change : state.changes) {
    const abi::ChangeHeader header{change.offset, change.size_bytes};
    std::memcpy(next, &header, sizeof header);
    next += sizeof header;
    const std::size_t padded = round_up(change.size_bytes, padding);
    if (change.size_bytes > 0) std::memcpy(next, change.bytes, change.size_bytes);
    std::memset(next + change.size_bytes, 0, padded - change.size_bytes);
    next += padded;
  }
}

std::size_t state_bytes_after(const NewState& state, std::size_t before) {
  if (state.kind == abi::EntryKind::Whole) return state.whole.size();
  for (const fb_change& change : state.changes) {
    before = std::max<std::size_t>(before, change.offset + change.size_bytes);
  }
  return before;
}

std::optional<Change> ChangeReader::next() {
  abi::ChangeHeader header;
  if (left_.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, left_.data(), sizeof header);
  const std::size_t space = left_.size() - sizeof header;
  const bool lies_inside = header.size_bytes <= space && round_up(header.size_bytes, padding) <= space &&
                           header.offset <= state_bytes_ && header.size_bytes <= state_bytes_ - header.offset;
  if (!lies_inside) return std::nullopt;
  const Change change{header.offset, left_.subspan(sizeof header, header.size_bytes)};
  left_ = left_.subspan(sizeof header + round_up(header.size_bytes, padding));
  return change;
}

bool apply_payload(abi::EntryKind kind, std::span<const std::byte> payload, std::size_t state_bytes,
                   std::vector<std::byte>& state) {
  if (kind == abi::EntryKind::Whole) {
    state.assign(payload.begin(), payload.end());
    return payload.size() == state_bytes;
  }
  if (kind != abi::EntryKind::Changes || state_bytes < state.size()) return false;
  state.resize(state_bytes);
  ChangeReader changes(payload, state_bytes);
  while (const auto change = changes.next()) {
    if (!change->bytes.empty())
      std::memcpy(state.data() + change->offset, change->bytes.data(), change->bytes.size());
  }
  return changes.at_end();
}

}  // namespace firebreak::journal
