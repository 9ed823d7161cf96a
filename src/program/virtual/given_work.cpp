// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/given_work.h"

#include <algorithm>
#include <unordered_map>

namespace firebreak::virtual_driver {
namespace {

/// The stream of what is in none.
constexpr std::uint64_t nobody = 0;

/// What lies behind a mark of its work's that is itself behind something that has not ended.
void note_not_begun(const redo::RedoLog& log, std::vector<GivenWork::UnderWay::Entry>& entries) {
  enum class Seen { Ended, Doubtful, Marked };
  std::unordered_map<std::uint64_t, Seen> works;
  std::size_t next = 0;
  for (std::size_t i = entries.empty() ? log.entries.size() : entries.front().index; i < log.entries.size();
       ++i) {
    Seen& its = works[log.entries[i].stream];
    if (log.entries[i].kind == abi::RedoKind::RegionStart && its == Seen::Doubtful) its = Seen::Marked;
    if (next == entries.size() || entries[next].index != i) continue;
    if (!entries[next].has_ended && its == Seen::Ended) its = Seen::Doubtful;
    entries[next].may_have_begun = its != Seen::Marked;
    ++next;
  }
}

}  // namespace

GivenWork::GivenWork()
    : memory_(sizeof(abi::RedoRing) + ring_bytes), writer_(*redo::RingWriter::make(memory_.bytes())) {}

void GivenWork::launch(const Work& work, const GivenLaunch& launch, std::span<const std::byte> parameters) {
  abi::RedoLaunch noted{};
  noted.kernel = reinterpret_cast<std::uintptr_t>(launch.function);
  std::ranges::copy(launch.grid, noted.grid);
  std::ranges::copy(launch.block, noted.block);
  noted.shared_bytes = launch.shared_bytes;
  writer_.launch(number_of(work), noted, parameters);
}

void GivenWork::copy(const Work& work, const GivenArea& to, const GivenArea& from) {
  writer_.copy(number_of(work), {to, from});
}

void GivenWork::fill(const Work& work, const GivenArea& to, std::uint32_t value, std::uint32_t value_bytes) {
  writer_.fill(number_of(work), {to, value, value_bytes});
}

void GivenWork::upload(const Work& work, std::uint64_t to, std::span<const std::byte> bytes) {
  if (bytes.size() > abi::redo_payload_max) return unknown(work, abi::RedoCause::HostMemory);
  writer_.upload(number_of(work), {one_row(to, bytes.size())}, bytes);
}

void GivenWork::graph(const Work& work, std::uint64_t content) { writer_.graph(number_of(work), {content}); }

void GivenWork::nothing(const Work& work) { writer_.record_event(number_of(work), 0); }

void GivenWork::unknown(const Work& work, abi::RedoCause cause) {
  writer_.cannot_redo(number_of(work), cause);
}

void GivenWork::mark(const Work& work) { writer_.start_region(number_of(work), {}); }

void GivenWork::seen() { writer_.wait_for_event(nobody, 0); }

void GivenWork::given_back() { writer_.cannot_redo(nobody, abi::RedoCause::GivenBack); }

Result<GivenWork::UnderWay> GivenWork::under_way(std::span<Work* const> works) {
  auto log = redo::read_ring(memory_.bytes());
  if (!log) return propagate(log);
  if (log->has_gap) return fail(ErrorCode::Internal, "what was noted has a gap");
  std::unordered_map<std::uint64_t, std::uint64_t> left;
  std::uint64_t all_left = 0;
  for (const Work* const work : works) {
    const std::uint64_t count = work->queued.load() - work->ended.load();
    left[number_of(*work)] = count;
    all_left += count;
  }
  UnderWay found;
  bool may_be_seen = false;
  for (std::size_t i = log->entries.size(); i > 0 && all_left > 0; --i) {
    const redo::RedoEntry& entry = log->entries[i - 1];
    const bool is_seen = entry.stream == nobody && entry.kind == abi::RedoKind::EventWait;
    may_be_seen = may_be_seen || is_seen;
    if (is_seen || entry.kind == abi::RedoKind::RegionStart) continue;
    const auto its = left.find(entry.stream);
    const bool has_ended = its == left.end() || its->second == 0;
    if (!has_ended) {
      its->second -= 1;
      all_left -= 1;
    }
    found.entries.push_back({.index = i - 1, .has_ended = has_ended, .may_be_seen = may_be_seen});
  }
  if (all_left != 0) return fail(ErrorCode::ResourceExhausted, "more was under way than what is noted");
  std::ranges::reverse(found.entries);
  note_not_begun(*log, found.entries);
  found.log = std::move(*log);
  return found;
}

}  // namespace firebreak::virtual_driver
