// SPDX-License-Identifier: Apache-2.0
#include "program/journal/commit_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "program/journal/commit_checksum.h"
#include "program/journal/commit_entry.h"
#include "program/journal/image_marks.h"

namespace firebreak::journal {
namespace {

/// A fenced process finishes at most the commit that it is in, and its mark moves with each entry that it
/// folds.
constexpr int attempts = 16;

tl::unexpected<Error> corrupt(std::string what) { return fail(ErrorCode::Protocol, std::move(what)); }

struct Entry {
  abi::JournalEntry header;
  std::vector<std::byte> payload;
};

Result<Entry> read_entry(const abi::CommitJournal& journal, std::uint64_t epoch, std::uint64_t step) {
  Entry entry;
  std::memcpy(&entry.header, &journal.entries[step % abi::journal_entries], sizeof entry.header);
  const abi::JournalEntry& header = entry.header;
  const bool is_the_one = header.epoch == epoch && header.step == step &&
                          header.payload_bytes <= abi::payload_bytes_max &&
                          header.payload_offset <= abi::payload_bytes_max - header.payload_bytes &&
                          header.state_bytes <= abi::state_bytes_max;
  if (is_the_one) {
    const std::byte* begin = journal.payloads + header.payload_offset;
    entry.payload.assign(begin, begin + header.payload_bytes);
    if (header.checksum == checksum_of(header, entry.payload)) return entry;
  }
  return corrupt(fmt::format("step {} was committed, but its forward state is not whole", step));
}

Status apply_entry(const Entry& entry, std::vector<std::byte>& state) {
  if (apply_payload(entry.header.kind, entry.payload, entry.header.state_bytes, state)) return {};
  return corrupt(
      fmt::format("step {} was committed, but its forward state makes no sense", entry.header.step));
}

/// A copy of the image and of its sums; the content first, so that a block that is being written shows its
/// coming sum.
class ImageCopy {
 public:
  ImageCopy(const abi::CommitJournal& journal, const abi::ImageMark& mark)
      : mark_(mark),
        state_(journal.image, journal.image + mark.state_bytes),
        sums_((mark.state_bytes + abi::image_block_bytes - 1) / abi::image_block_bytes) {
    if (!sums_.empty()) std::memcpy(sums_.data(), journal.sums, sums_.size() * sizeof(Sums));
  }

  std::vector<std::byte>& state() { return state_; }

  /// Notes which blocks are as the mark says.
  void verify_marked() {
    for (std::size_t block = 0; block < sums_.size(); ++block) {
      const Sums& two = sums_[block];
      const abi::BlockSum* newest = nullptr;
      for (const abi::BlockSum& sum : two.of) {
        if (sum.next_step <= mark_.next_step && (newest == nullptr || sum.next_step > newest->next_step))
          newest = &sum;
      }
      if (newest == nullptr || !holds(block, *newest)) doubtful_.push_back(block);
    }
  }

  /// The others, once the entry that may have been half folded is in: they have to be as that left them.
  Status verify_rest() const {
    for (const std::size_t block : doubtful_) {
      const Sums& two = sums_[block];
      const bool is_good = std::any_of(std::begin(two.of), std::end(two.of), [&](const abi::BlockSum& sum) {
        return sum.next_step == mark_.next_step + 1 && holds(block, sum);
      });
      if (!is_good) return corrupt(fmt::format("forward state: block {} does not verify", block));
    }
    return {};
  }

 private:
  struct Sums {
    abi::BlockSum of[2];
  };
  bool holds(std::size_t block, const abi::BlockSum& sum) const {
    const std::size_t begin = block * abi::image_block_bytes;
    const std::size_t size = std::min(abi::image_block_bytes, state_.size() - begin);
    return sum.hash ==
           checksum_of(BlockPlace{mark_.epoch, sum.next_step, block}, std::span(state_).subspan(begin, size));
  }

  abi::ImageMark mark_;
  std::vector<std::byte> state_;
  std::vector<Sums> sums_;
  std::vector<std::size_t> doubtful_;
};

/// The state that the image and the entry behind it make; nothing left to apply: the image alone.
Result<std::vector<std::byte>> first_state(const abi::CommitJournal& journal, const abi::ImageMark& mark,
                                           const Entry* entry) {
  if (entry != nullptr && entry->header.kind == abi::EntryKind::Whole) {
    std::vector<std::byte> state;
    if (auto applied = apply_entry(*entry, state); !applied) return propagate(applied);
    return state;
  }
  if (mark.image_next_step != mark.next_step) return corrupt("forward state: no image of the step before");
  ImageCopy image(journal, mark);
  image.verify_marked();
  if (entry != nullptr) {
    if (auto applied = apply_entry(*entry, image.state()); !applied) return propagate(applied);
  }
  if (auto verified = image.verify_rest(); !verified) return propagate(verified);
  return std::move(image.state());
}

/// Entries that were queued behind say how far the GPU was seen to be.
Status check_counter(const abi::CommitJournal& journal, std::uint64_t epoch, std::uint64_t next_step) {
  for (std::uint64_t step = next_step; step < next_step + abi::journal_entries; ++step) {
    const auto entry = read_entry(journal, epoch, step);
    if (!entry) return {};
    if (entry->header.passed > next_step) {
      return corrupt(
          fmt::format("the GPU's step counter is {}, and was {} before", next_step, entry->header.passed));
    }
  }
  return {};
}

Result<Recovered> rebuild(const abi::CommitJournal& journal, const abi::ImageMark& mark,
                          std::uint64_t next_step) {
  if (next_step < mark.next_step || next_step - mark.next_step > abi::journal_entries) {
    return corrupt(
        fmt::format("the GPU's step counter is {}, with {} steps in the image of the forward state",
                    next_step, mark.next_step));
  }
  std::vector<Entry> entries;
  for (std::uint64_t step = mark.next_step; step < next_step; ++step) {
    auto entry = read_entry(journal, mark.epoch, step);
    if (!entry) return propagate(entry);
    entries.push_back(std::move(*entry));
  }
  auto state = first_state(journal, mark, entries.empty() ? nullptr : entries.data());
  if (!state) return propagate(state);
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (auto applied = apply_entry(entries[i], *state); !applied) return propagate(applied);
  }
  if (auto plausible = check_counter(journal, mark.epoch, next_step); !plausible) return propagate(plausible);
  return Recovered{next_step, std::move(*state)};
}

Result<Recovered> rebuild_while_it_moves(const abi::SharedMemory& shared, std::size_t at,
                                         const abi::ImageMark& first) {
  const abi::CommitJournal& journal = shared.journals[at];
  const std::atomic<std::uint64_t>& counter = shared.page.areas[at].next_step;
  abi::ImageMark mark = first;
  for (int attempt = 0;; ++attempt) {
    const std::uint64_t next_step = counter.load(std::memory_order_acquire);
    auto recovered = rebuild(journal, mark, next_step);
    if (recovered) recovered->journal = at;
    if (recovered || attempt == attempts) return recovered;
    const MarksFound now = read_marks(journal);
    const bool folded =
        now.newest && now.newest->epoch == mark.epoch && now.newest->next_step > mark.next_step;
    if (!folded && counter.load(std::memory_order_acquire) == next_step) return recovered;
    if (folded) mark = *now.newest;
  }
}

struct InOffice {
  std::size_t journal = 0;
  abi::ImageMark mark;
};

/// Finds the area whose term of office began last. Its marks are written before its area says so, and one of
/// the two is whole at any time, or was never written.
Result<std::optional<InOffice>> find_newest(const abi::SharedMemory& shared) {
  std::optional<InOffice> newest;
  for (std::size_t at = 0; at < abi::commit_areas; ++at) {
    const std::uint64_t term = shared.page.areas[at].term.load(std::memory_order_acquire);
    const MarksFound marks = read_marks(shared.journals[at]);
    const bool is_whole = marks.newest ? marks.newest->epoch + 1 >= term : marks.has_blank && term == 0;
    if (!is_whole) return corrupt(fmt::format("forward state: whose journal {} is does not verify", at));
    if (marks.newest && (!newest || marks.newest->epoch > newest->mark.epoch))
      newest = InOffice{at, *marks.newest};
  }
  return newest;
}

}  // namespace

Result<Recovered> recover(const abi::SharedMemory& shared, std::uint64_t epoch) {
  const auto newest = find_newest(shared);
  if (!newest) return propagate(newest);
  if (!*newest) return Recovered{};
  const abi::ImageMark& mark = (*newest)->mark;
  if (mark.epoch >= epoch)
    return corrupt(fmt::format("forward state: epoch {} has begun, this is {}", mark.epoch, epoch));
  return rebuild_while_it_moves(shared, (*newest)->journal, mark);
}

}  // namespace firebreak::journal
