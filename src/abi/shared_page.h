// SPDX-License-Identifier: Apache-2.0
/// The page that an agent shares with the two processes of one tenant: promotion, commits, times. It is the
/// only thing on the path of a promotion: one store and one futex wake. Processes of different builds may
/// meet on it, so the layout is fixed and carries its version. Whoever reads it treats what the others wrote
/// as hearsay.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace firebreak::abi {

inline constexpr std::uint32_t shared_page_magic = 0x46425047;  // "FBPG"
inline constexpr std::uint32_t shared_page_version = 1;
inline constexpr std::size_t commit_state_bytes_max = 4096;
/// Commits that may be queued on the GPU before the host has to wait for the oldest.
inline constexpr std::size_t commit_slots = 8;

/// The epoch and whether the tenant is done, in one word, so that both are told by one store.
struct PromotionWord {
  std::uint32_t epoch = 0;
  bool finished = false;

  static PromotionWord from(std::uint32_t raw) { return {raw >> 1, (raw & 1) != 0}; }
  std::uint32_t raw() const { return (epoch << 1) | (finished ? 1u : 0u); }
};

/// Forward state of one step. Written by the host before the GPU is told to publish the step; the checksum
/// covers everything else, so a torn or stale slot is recognised.
struct CommitSlot {
  std::uint64_t epoch;
  std::uint64_t step;
  std::uint64_t size_bytes;
  std::uint64_t checksum;
  std::byte state[commit_state_bytes_max];
};

/// What the active of one epoch writes. Epochs take the two in turn, so that a fenced active that is still
/// running cannot reach what its successor writes; before the same one is used again its old writer has
/// ended.
struct alignas(64) CommitArea {
  /// Last step that is done, plus one. Written by the GPU (cuStreamWriteValue64) in stream order.
  std::atomic<std::uint64_t> next_step;
  std::atomic<std::uint64_t>
      queued_step;  ///< last step whose commit is queued, plus one; written by the host
  std::atomic<std::uint64_t> beats_queued;  ///< heartbeats, by the host
  std::atomic<std::uint64_t> beats_done;    ///< and by the GPU, in stream order
  std::uint64_t reserved[4];
  CommitSlot slots[commit_slots];
};

/// How far the GPU has come with what the host gave it. While something is in flight and `done` stands still,
/// the tenant hangs. A tenant may write nonsense here; it concerns itself alone.
struct Progress {
  std::uint64_t done = 0;
  bool in_flight = false;
};

inline Progress progress_of(const CommitArea& area) {
  const std::uint64_t steps = area.next_step.load(std::memory_order_acquire);
  const std::uint64_t beats = area.beats_done.load(std::memory_order_acquire);
  const bool in_flight = area.queued_step.load(std::memory_order_relaxed) > steps ||
                         area.beats_queued.load(std::memory_order_relaxed) > beats;
  return {steps + beats, in_flight};
}

struct alignas(4096) SharedPage {
  std::uint32_t magic;
  std::uint32_t version;
  alignas(64) std::atomic<std::uint32_t> promotion;     ///< a PromotionWord; the futex that standbys sleep on
  alignas(64) std::atomic<std::int64_t> decided_at_ns;  ///< the agent decided to promote (CLOCK_MONOTONIC)
  std::atomic<std::int64_t> woken_at_ns;                ///< the standby came out of its sleep
  std::atomic<std::int64_t> resumed_at_ns;              ///< the standby's first kernel had completed
  CommitArea areas[2];                                  ///< by epoch, modulo 2
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(std::atomic<std::uint64_t>) == 8);
static_assert(offsetof(SharedPage, promotion) == 64);
static_assert(offsetof(SharedPage, decided_at_ns) == 128);
static_assert(offsetof(CommitArea, slots) == 64);
static_assert(sizeof(SharedPage) % 4096 == 0);

/// FNV-1a over the slot's header and its state. `size_bytes` beyond the slot gives 0, which never matches.
inline std::uint64_t commit_checksum(std::uint64_t epoch, std::uint64_t step,
                                     std::span<const std::byte> state) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  auto mix = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (std::uint64_t value : {epoch, step, static_cast<std::uint64_t>(state.size())}) {
    for (int shift = 0; shift < 64; shift += 8) mix((value >> shift) & 0xff);
  }
  for (std::byte byte : state) mix(static_cast<std::uint64_t>(byte));
  return hash == 0 ? 1 : hash;
}

inline void write_commit(CommitSlot& slot, std::uint64_t epoch, std::uint64_t step,
                         std::span<const std::byte> state) {
  slot.epoch = epoch;
  slot.step = step;
  slot.size_bytes = state.size();
  if (!state.empty()) std::memcpy(slot.state, state.data(), state.size());
  slot.checksum = commit_checksum(epoch, step, state);
}

/// Whether the slot holds the whole commit of that epoch and step.
inline bool commit_is_valid(const CommitSlot& slot, std::uint64_t epoch, std::uint64_t step) {
  if (slot.epoch != epoch || slot.step != step || slot.size_bytes > commit_state_bytes_max) return false;
  return slot.checksum == commit_checksum(epoch, step, std::span(slot.state, slot.size_bytes));
}

}  // namespace firebreak::abi
