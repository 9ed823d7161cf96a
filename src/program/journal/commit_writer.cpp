// SPDX-License-Identifier: Apache-2.0
#include "program/journal/commit_writer.h"

#include <algorithm>
#include <utility>

#include "program/journal/commit_checksum.h"
#include "program/journal/image_marks.h"

namespace firebreak::journal {

CommitWriter::CommitWriter(abi::SharedMemory& shared, std::uint64_t epoch, const Recovered& recovered,
                           SharedStores stores)
    : CommitWriter(shared, abi::journal_for(epoch, recovered.journal), epoch, recovered, std::move(stores)) {}

CommitWriter::CommitWriter(abi::SharedMemory& shared, std::size_t journal, std::uint64_t epoch,
                           const Recovered& recovered, SharedStores stores)
    : area_(shared.page.areas[journal]),
      journal_(shared.journals[journal]),
      epoch_(epoch),
      stores_(std::move(stores)),
      next_step_(recovered.next_step),
      folded_(recovered.next_step),
      image_next_step_(recovered.next_step),
      state_bytes_(recovered.state.size()),
      next_mark_(read_marks(journal_).free_slot),
      image_(recovered.state) {
  sum_blocks(0, image_.size());
  copy_to_image(0, image_.size());
  for (auto* word : {&area_.heartbeats_queued, &area_.heartbeats_done}) stores_.in_order(*word, 0);
  for (auto* word : {&area_.first_step, &area_.queued_step, &area_.next_step})
    stores_.in_order(*word, next_step_);
  // The journal is its former owner's until here. Both marks are written, so that no damage to one hides who
  // has it now.
  move_mark();
  move_mark();
  stores_.in_order(area_.term, epoch_ + 1);
}

bool CommitWriter::append(const NewState& state) {
  if (next_step_ - folded_ == abi::journal_entries) return false;
  const std::size_t bytes = payload_bytes_of(state);
  const auto offset = space_.take(bytes);
  if (!offset) return false;
  if (payloads_.size() < *offset + bytes) payloads_.resize(*offset + bytes);
  const std::span payload(payloads_.data() + *offset, bytes);
  write_payload(state, payload);
  const std::size_t before = std::exchange(state_bytes_, state_bytes_after(state, state_bytes_));
  queued_[next_step_ % abi::journal_entries] = {state.kind, *offset, bytes, state_bytes_, before};
  abi::JournalEntry entry{.epoch = epoch_,
                          .step = next_step_,
                          .payload_offset = *offset,
                          .payload_bytes = bytes,
                          .state_bytes = state_bytes_,
                          .kind = state.kind,
                          .passed = passed(),
                          .checksum = 0};
  entry.checksum = checksum_of(entry, payload);
  stores_.copy(journal_.payloads + *offset, payload);
  stores_.copy(journal_.entries[next_step_ % abi::journal_entries], entry);
  ++next_step_;
  return true;
}

void CommitWriter::retract() {
  --next_step_;
  stores_.in_order(journal_.entries[next_step_ % abi::journal_entries].checksum, 0);
  state_bytes_ = queued(next_step_).state_bytes_before;
  space_.give_back_newest();
}

std::span<const std::byte> CommitWriter::payload_of(const Queued& entry) const {
  return {payloads_.data() + entry.payload_offset, entry.payload_bytes};
}

std::uint64_t CommitWriter::passed() const {
  return std::min(area_.next_step.load(std::memory_order_acquire), next_step_);
}

void CommitWriter::fold_some() {
  if (next_step_ - folded_ < fold_every && space_.taken_bytes() < PayloadSpace::warm_bytes / 2) return;
  fold(fold_at_most, Eagerness::Later);
}

void CommitWriter::fold(std::size_t entries, Eagerness eagerness) {
  const std::uint64_t until = passed();
  bool skipped = false;
  for (; folded_ < until && entries > 0;) {
    const bool is_last = folded_ + 1 == until;
    if (!is_last && queued(folded_ + 1).kind == abi::EntryKind::Whole) {
      drop_oldest();
      skipped = true;
      continue;
    }
    if (is_last && queued(folded_).kind == abi::EntryKind::Whole && eagerness == Eagerness::Later) break;
    // A recovering process has to know, before the image is touched, that it is not the state before this
    // entry.
    if (skipped) move_mark();
    skipped = false;
    fold_oldest();
    --entries;
  }
  if (skipped) move_mark();
}

void CommitWriter::drop_oldest() {
  space_.give_back_oldest();
  ++folded_;
}

void CommitWriter::fold_oldest() {
  const Queued& entry = queued(folded_);
  image_next_step_ = folded_ + 1;
  if (entry.kind == abi::EntryKind::Whole) {
    fold_whole(entry);
  } else {
    fold_changes(entry);
  }
  drop_oldest();
  move_mark();
}

void CommitWriter::fold_whole(const Queued& entry) {
  const auto payload = payload_of(entry);
  image_.assign(payload.begin(), payload.end());
  sum_blocks(0, image_.size());
  copy_to_image(0, image_.size());
}

/// Sums are all written before all bytes: a block that is found half written then has the sum that it is to
/// have.
void CommitWriter::fold_changes(const Queued& entry) {
  const std::size_t before = image_.size();
  (void)apply_payload(entry.kind, payload_of(entry), entry.state_bytes, image_);
  sum_blocks(before, image_.size());
  ChangeReader changed(payload_of(entry), entry.state_bytes);
  while (const auto change = changed.next())
    sum_blocks(change->offset, change->offset + change->bytes.size());
  copy_to_image(before, image_.size());
  ChangeReader again(payload_of(entry), entry.state_bytes);
  while (const auto change = again.next())
    copy_to_image(change->offset, change->offset + change->bytes.size());
}

/// The blocks that these bytes of the image lie in.
void CommitWriter::sum_blocks(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  for (std::size_t block = begin / abi::image_block_bytes; block <= (end - 1) / abi::image_block_bytes;
       ++block)
    sum_block(block);
}

void CommitWriter::sum_block(std::size_t block) {
  auto& sums = journal_.sums[block];
  if (block == blocks_.size()) {
    blocks_.emplace_back();
    stores_.in_order(sums[0].next_step, 0);  // the word is what a former owner left
    stores_.in_order(sums[0].hash, 0);
  } else if (blocks_[block].touched_in == image_next_step_) {
    return;
  }
  blocks_[block].touched_in = image_next_step_;
  blocks_[block].current ^= 1;
  abi::BlockSum& next = sums[blocks_[block].current];
  const std::size_t begin = block * abi::image_block_bytes;
  const std::size_t size = std::min(abi::image_block_bytes, image_.size() - begin);
  const std::uint64_t hash =
      checksum_of(BlockPlace{epoch_, image_next_step_, block}, std::span(image_).subspan(begin, size));
  stores_.in_order(next.hash, hash);
  stores_.in_order(next.next_step, image_next_step_);
}

void CommitWriter::copy_to_image(std::size_t begin, std::size_t end) {
  stores_.copy(journal_.image + begin, std::span(image_).subspan(begin, end - begin));
}

void CommitWriter::move_mark() {
  abi::ImageMark mark{.epoch = epoch_,
                      .next_step = folded_,
                      .image_next_step = image_next_step_,
                      .state_bytes = image_.size(),
                      .reserved = {},
                      .checksum = 0};
  const std::uint64_t checksum = checksum_of(mark);
  abi::ImageMark& to = journal_.marks[next_mark_];
  next_mark_ ^= 1;
  // The old checksum goes first, so that no half of two marks is one.
  stores_.in_order(to.checksum, 0);
  stores_.copy(reinterpret_cast<std::byte*>(&to),
               std::as_bytes(std::span(&mark, 1)).first(offsetof(abi::ImageMark, checksum)));
  stores_.in_order(to.checksum, checksum);
}

}  // namespace firebreak::journal
