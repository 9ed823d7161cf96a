// SPDX-License-Identifier: Apache-2.0
/// Publishes what an active commits, in a journal of its own. Writes to the shared memory and reads nothing
/// there but the GPU's counter: what it needs later it keeps for itself, so that whatever others do to the
/// shared memory neither harms this process nor passes for its work.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "program/journal/commit_entry.h"
#include "program/journal/commit_recovery.h"
#include "program/journal/payload_space.h"
#include "program/journal/shared_stores.h"
#include "shared/abi/commit_journal.h"

namespace firebreak::journal {

/// Writes commits. For one thread.
class CommitWriter {
 public:
  /// Takes office: begins a journal where nobody else is, and puts what was recovered there, so that the next
  /// successor finds it. Before that is whole the one it came from counts. `shared` outlives the writer.
  CommitWriter(abi::SharedMemory& shared, std::uint64_t epoch, const Recovered& recovered,
               SharedStores stores = SharedStores());

  std::uint64_t next_step() const { return next_step_; }
  abi::CommitArea& area() const { return area_; }

  /// Writes the entry of next_step(), which counts once the GPU's counter has passed it. False: there is no
  /// room before more of what is queued was folded; with all of it folded there always is. `state` is one
  /// that check() accepts.
  bool append(const NewState& state);
  /// Takes back what was appended last, which the GPU has not been told of.
  void retract();

  /// Folds, every few commits, what the GPU has passed, up to `fold_at_most` entries, so that most commits
  /// only append. Puts off what a later whole state may make needless.
  void fold_some();
  void fold_all() { fold(abi::journal_entries, Eagerness::Now); }
  static constexpr std::size_t fold_every = 4;
  static constexpr std::size_t fold_at_most = 2 * fold_every;

 private:
  enum class Eagerness { Later, Now };
  struct Queued {
    abi::EntryKind kind;
    std::size_t payload_offset;
    std::size_t payload_bytes;
    std::size_t state_bytes;
    std::size_t state_bytes_before;
  };
  /// The state of a block: which of its two sums holds, and the last step that touched it.
  struct Block {
    std::uint64_t touched_in = 0;
    unsigned int current = 0;
  };

  CommitWriter(abi::SharedMemory& shared, std::size_t journal, std::uint64_t epoch,
               const Recovered& recovered, SharedStores stores);
  std::uint64_t passed() const;
  const Queued& queued(std::uint64_t step) const { return queued_[step % abi::journal_entries]; }
  std::span<const std::byte> payload_of(const Queued& entry) const;
  void fold(std::size_t entries, Eagerness eagerness);
  void drop_oldest();
  void fold_oldest();
  void fold_whole(const Queued& entry);
  void fold_changes(const Queued& entry);
  void sum_blocks(std::size_t begin, std::size_t end);
  void sum_block(std::size_t block);
  void copy_to_image(std::size_t begin, std::size_t end);
  void move_mark();

  abi::CommitArea& area_;
  abi::CommitJournal& journal_;
  std::uint64_t epoch_;
  SharedStores stores_;
  std::uint64_t next_step_;
  std::uint64_t folded_;           ///< next_step of the mark
  std::uint64_t image_next_step_;  ///< image_next_step of the mark
  std::size_t state_bytes_;        ///< size after the newest entry
  unsigned int next_mark_;
  PayloadSpace space_{abi::payload_bytes_max};
  std::array<Queued, abi::journal_entries> queued_{};
  std::vector<std::byte> payloads_;  ///< payloads of what is queued, at the same places as in the journal
  std::vector<std::byte> image_;     ///< image that the journal should have
  std::vector<Block> blocks_;        ///< blocks of the image; those that had a sum in this epoch
};

}  // namespace firebreak::journal
