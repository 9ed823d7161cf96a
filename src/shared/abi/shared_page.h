// SPDX-License-Identifier: Apache-2.0
/// The page that an agent shares with the two processes of one tenant: promotion, turns, counters, times. It
/// is the only thing on the path of a promotion: one store and one futex wake. Processes of different builds
/// may meet on it, so the layout is fixed and carries its version. Whoever reads it treats what the others
/// wrote as unproven. The forward state itself lies behind it, in the same memory file
/// (shared/abi/commit_journal.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace firebreak::abi {

inline constexpr std::uint32_t shared_page_magic = 0x46425047;  // "FBPG"
inline constexpr std::uint32_t shared_page_version = 3;
/// Commit areas, and journals: one holds what was committed, which nobody touches before a successor is in
/// office. The two others are for those on the way there, however many fail: a fenced process that is still
/// running and its successor have one each (journal_for in shared/abi/commit_journal.h).
inline constexpr std::size_t commit_areas = 3;

/// The epoch and whether the tenant is done, in one word, so that both are told by one store.
struct PromotionWord {
  std::uint32_t epoch = 0;
  bool finished = false;

  static PromotionWord from(std::uint32_t raw) { return {raw >> 1, (raw & 1) != 0}; }
  std::uint32_t raw() const { return (epoch << 1) | (finished ? 1u : 0u); }
};

/// Says who becomes active in which epoch, in one word: a waiting process is released by its own name alone.
/// An epoch that begins for somebody else releases nobody.
struct Promoted {
  std::uint32_t epoch = 0;
  std::uint32_t member = 0;  ///< the number that Joined gave the process
  friend bool operator==(const Promoted&, const Promoted&) = default;

  static Promoted from(std::uint64_t raw) {
    return {static_cast<std::uint32_t>(raw >> 32), static_cast<std::uint32_t>(raw)};
  }
  std::uint64_t raw() const { return (std::uint64_t{epoch} << 32) | member; }
};

/// An active's word that its GPU work has ended and none follows, for its standby to go on. It waits for an
/// answer no longer than some seconds, and works on then; an agent that is slow must not promote on the word
/// of who works on. So the word is on the page, and one compare-and-swap decides: the agent takes it before
/// it promotes, or the active withdraws it.
struct HandOverWord {
  enum class State : std::uint32_t { None, Offered, Taken, Withdrawn };
  std::uint32_t epoch = 0;   ///< epoch of the process whose word it is; a word of any other epoch is old
  std::uint32_t number = 0;  ///< number of the try, below 2^30
  State state = State::None;

  static HandOverWord from(std::uint64_t raw) {
    const auto low = static_cast<std::uint32_t>(raw);
    return {static_cast<std::uint32_t>(raw >> 32), low >> 2, static_cast<State>(low & 3)};
  }
  std::uint64_t raw() const {
    return std::uint64_t{epoch} << 32 | std::uint64_t{number} << 2 | static_cast<std::uint64_t>(state);
  }
};

/// How far whoever took office here last is. What the GPU writes has a cache line of its own.
struct alignas(64) CommitArea {
  /// Last step that is done, plus one. Written by the GPU in stream order (cuStreamWriteValue64, or a kernel
  /// of the tenant's).
  std::atomic<std::uint64_t> next_step;
  std::atomic<std::uint64_t> heartbeats_done;  ///< heartbeats, by the GPU
  std::uint64_t reserved[6];
  /// The epoch plus one of whom all this is, written last as it takes office; 0: nobody's yet.
  std::atomic<std::uint64_t> term;
  std::atomic<std::uint64_t> first_step;  ///< step at which the epoch began
  std::atomic<std::uint64_t>
      queued_step;  ///< last step whose commit is queued, plus one; written by the host
  std::atomic<std::uint64_t> heartbeats_queued;  ///< heartbeats, by the host
  /// The epoch plus one whose active has left in good order, written by it; anything else: it has not. For an
  /// agent that was not there to be told.
  std::atomic<std::uint64_t> left;
  std::uint64_t more_reserved[3];
};

/// How far the GPU has come with what the host gave it. While something is in flight and `done` stands still,
/// the tenant hangs. A tenant may write nonsense here; it concerns itself alone.
struct Progress {
  std::uint64_t done = 0;
  bool in_flight = false;
};

inline Progress progress_of(const CommitArea& area) {
  const std::uint64_t steps = area.next_step.load(std::memory_order_acquire);
  const std::uint64_t heartbeats = area.heartbeats_done.load(std::memory_order_acquire);
  const bool in_flight = area.queued_step.load(std::memory_order_relaxed) > steps ||
                         area.heartbeats_queued.load(std::memory_order_relaxed) > heartbeats;
  return {steps + heartbeats, in_flight};
}

/// The agent's word that the active waits between two steps, while another tenant computes: until when.
/// Nobody has to take it back, so who waits outlives an agent that ends. In one word, on which the active
/// sleeps: milliseconds of CLOCK_MONOTONIC, modulo 2^32. 0, a time that has passed, and one that is farther
/// away than any agent's mean the same, which is "go on".
struct HoldWord {
  static constexpr std::int64_t longest_ms = 60'000;

  static std::uint32_t until(std::int64_t now_ns, std::int64_t time_ms) {
    const auto raw = static_cast<std::uint32_t>(now_ns / 1'000'000 + time_ms);
    return raw == 0 ? 1 : raw;
  }
  /// Returns the rest of it; 0: go on.
  static std::int64_t left_ms(std::uint32_t raw, std::int64_t now_ns) {
    if (raw == 0) return 0;
    const std::int64_t left = static_cast<std::int32_t>(raw - static_cast<std::uint32_t>(now_ns / 1'000'000));
    return left > 0 && left <= longest_ms ? left : 0;
  }
};

/// Turns: the agent's words to the active, and the active's to the agent. Pages of agents that know no turns
/// have zeros here, and programs that know none write none.
struct alignas(64) TurnPlace {
  std::atomic<std::uint32_t> hold;   ///< a HoldWord, by the agent; the futex that the active sleeps on
  std::atomic<std::uint32_t> heard;  ///< not 0: the agent gives turns, and wants to be told TurnWanted
  std::uint32_t reserved[14];
  std::atomic<std::uint64_t> units;       ///< steps that are still to do, by the active; 0: it wants nothing
  std::atomic<std::int64_t> deadline_ns;  ///< when they are to be done (CLOCK_MONOTONIC); 0: some time
  std::atomic<std::int64_t> unit_ns;      ///< how long one of them took, lately
  std::atomic<std::uint64_t> taken;       ///< turns that it has asked for and got; 0: it never asks
  std::atomic<std::uint32_t> is_live;     ///< 1: somebody waits for what it computes
  std::uint32_t more_reserved[7];
};

/// Registered with the GPU as a whole; nothing behind it is.
struct alignas(4096) SharedPage {
  std::uint32_t magic;
  std::uint32_t version;
  alignas(64) std::atomic<std::uint32_t> promotion;     ///< a PromotionWord; the futex that standbys sleep on
  alignas(64) std::atomic<std::int64_t> decided_at_ns;  ///< the agent decided to promote (CLOCK_MONOTONIC)
  std::atomic<std::int64_t> woken_at_ns;                ///< the standby came out of its sleep
  std::atomic<std::int64_t> resumed_at_ns;              ///< the standby's first kernel had completed
  std::atomic<std::uint64_t> promoted;                  ///< a Promoted; stored before `promotion` is
  std::atomic<std::uint64_t> hand_over;                 ///< a HandOverWord, of the active and of the agent
  CommitArea areas[commit_areas];                       ///< one a journal
  TurnPlace turn;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(std::atomic<std::uint64_t>) == 8);
static_assert(offsetof(SharedPage, promotion) == 64);
static_assert(offsetof(SharedPage, decided_at_ns) == 128);
static_assert(offsetof(CommitArea, term) == 64);
static_assert(sizeof(CommitArea) == 128);
static_assert(offsetof(SharedPage, areas) == 192 && offsetof(SharedPage, turn) == 576);
static_assert(offsetof(TurnPlace, units) == 64 && sizeof(TurnPlace) == 128);
static_assert(sizeof(SharedPage) == 4096);

/// The counters of whoever took office last; null: nobody has.
inline const CommitArea* newest_area(const SharedPage& page) {
  const CommitArea* newest = nullptr;
  std::uint64_t term = 0;
  for (const CommitArea& each : page.areas) {
    const std::uint64_t its = each.term.load(std::memory_order_acquire);
    if (its <= term) continue;
    newest = &each;
    term = its;
  }
  return newest;
}

/// Returns the area of the active of `epoch`; null: it has not taken office.
inline const CommitArea* area_of(const SharedPage& page, std::uint64_t epoch) {
  for (const CommitArea& each : page.areas) {
    if (each.term.load(std::memory_order_acquire) == epoch + 1) return &each;
  }
  return nullptr;
}

}  // namespace firebreak::abi
