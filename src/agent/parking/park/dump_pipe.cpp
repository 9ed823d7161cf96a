// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/dump_pipe.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <utility>

#include "agent/parking/park/core_dump_file.h"
#include "ground/base/clock.h"
#include "ground/os/file.h"
#include "ground/os/pipe_room.h"

namespace firebreak::park {
namespace {

constexpr std::size_t narrow_bytes = 4096;
constexpr std::size_t wide_bytes = std::size_t{1} << 20;
/// Largest rest while its process is held: where a writer does not fill its pages, up to half of that is not
/// seen.
constexpr std::size_t held_bytes_max = std::size_t{64} << 10;
constexpr std::size_t bytes_free = 64;
/// With more than that to come the pipe is wide. It becomes narrow before the rest that is held.
constexpr std::size_t long_rest_bytes = 8 * wide_bytes;
constexpr std::size_t bytes_a_read = std::size_t{1} << 20;

}  // namespace

std::size_t DumpBudget::take(std::size_t wanted_bytes) {
  const std::size_t wanted = std::min(wanted_bytes, left_bytes_);
  const std::size_t taken = whole_ == nullptr ? wanted : whole_->take(wanted);
  left_bytes_ -= taken;
  return taken;
}

void DumpBudget::give_back(std::size_t bytes) {
  left_bytes_ += bytes;
  if (whole_ != nullptr) whole_->give_back(bytes);
}

std::shared_ptr<DumpBudget> DumpBudgets::of(uid_t user) {
  if (auto known = of_users_[user].lock()) return known;
  std::erase_if(of_users_, [](const auto& each) { return each.second.expired(); });
  auto made = std::make_shared<DumpBudget>(bytes_ - bytes_ / 4, whole_);
  of_users_[user] = made;
  return made;
}

BudgetedBytes& BudgetedBytes::operator=(BudgetedBytes&& other) noexcept {
  if (this == &other) return *this;
  clear();
  budget_ = other.budget_;
  bytes_ = std::move(other.bytes_);
  counted_bytes_ = std::exchange(other.counted_bytes_, 0);
  return *this;
}

std::size_t BudgetedBytes::add(std::span<const std::byte> more) {
  const std::size_t free_bytes = std::min(more.size(), bytes_free - std::min(bytes_free, bytes_.size()));
  const std::size_t counted = budget_->take(more.size() - free_bytes);
  const std::size_t kept = bytes_.add(more.first(free_bytes + counted));
  const std::size_t lost = std::min(counted, free_bytes + counted - kept);
  budget_->give_back(lost);
  counted_bytes_ += counted - lost;
  return kept;
}

void BudgetedBytes::clear() {
  budget_->give_back(std::exchange(counted_bytes_, 0));
  bytes_.clear();
}

Result<DumpPipe> DumpPipe::open(os::Kernel& kernel, const std::string& path,
                                std::shared_ptr<DumpBudget> budget) {
  if (auto made = os::make_fifo(path); !made) return propagate(made);
  auto fd = kernel.open(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return propagate(fd);
  const std::size_t room_bytes = os::resize_pipe(*fd, narrow_bytes);
  return DumpPipe(kernel, std::move(*fd), room_bytes, std::move(budget));
}

void DumpPipe::let_end() {
  if (std::exchange(may_end_, true)) return;
  room_bytes_ = os::resize_pipe(fd_, wide_bytes);
  if (state_ == State::Nearly) state_ = State::Writing;
}

/// Returns how much of what follows is wanted; 0: one more, and the writer could be through. Bytes in the
/// pipe count as written.
std::size_t DumpPipe::bytes_wanted() const {
  const DumpLength length = length_of_dump(bytes());
  if (may_end_) {
    // One more than there is to come shows that more comes.
    const bool is_within = length.is_known && length.bytes >= came_bytes_;
    return is_within ? std::min(length.bytes - came_bytes_ + 1, bytes_a_read) : bytes_a_read;
  }
  if (!length.is_known)
    return length.bytes > came_bytes_ ? std::min(length.bytes - came_bytes_, bytes_a_read) : bytes_a_read;
  const std::size_t held = room_bytes_ + 1;
  return length.bytes > came_bytes_ + held ? std::min(length.bytes - came_bytes_ - held, bytes_a_read) : 0;
}

/// Through a wide pipe a dump of 150 MB comes several times as fast. What is held at its end has to be seen,
/// and pages may be filled in part, so the pipe is narrow by then.
std::size_t DumpPipe::room_wanted(std::size_t rest_bytes) const {
  if (rest_bytes > long_rest_bytes) return wide_bytes;
  const std::size_t quarter = std::min(std::bit_floor(rest_bytes / 4), held_bytes_max);
  return room_bytes_ > held_bytes_max ? quarter : std::max(quarter, room_bytes_);
}

/// `came_bytes`: with those that have just been read.
void DumpPipe::make_room(std::size_t came_bytes) {
  const DumpLength length = length_of_dump(bytes());
  if (may_end_ || length.bytes <= came_bytes) return;
  const std::size_t wanted = room_wanted(length.bytes - came_bytes);
  if (wanted != room_bytes_) room_bytes_ = os::resize_pipe(fd_, wanted);
}

/// Linux makes a pipe narrower only while no more is in it. Of a writer that sleeps, since the pipe is full,
/// all is read before it writes again. One that is awake fills it before we have made it narrow. So that is
/// awaited, but not for long: a writer may be slow.
bool DumpPipe::is_to_fill_first() {
  const DumpLength length = length_of_dump(bytes());
  if (may_end_ || room_bytes_ <= held_bytes_max || length.bytes <= came_bytes_) return false;
  if (length.bytes - came_bytes_ > long_rest_bytes || turns_to_fill_ == 0) return false;
  --turns_to_fill_;
  return !os::is_pipe_full(fd_);
}

bool DumpPipe::look_ahead() {
  if (state_ != State::Nearly || is_cut_) return true;
  const auto waiting = os::peek_pipe(fd_, room_bytes_);
  if (waiting.size() > ahead_bytes_) {
    ahead_bytes_ += bytes_.add(std::span(waiting).subspan(ahead_bytes_));
  }
  const DumpLength length = length_of_dump(bytes());
  return !length.is_known || bytes().size() + narrow_bytes >= length.bytes;
}

DumpPipe::Beginning DumpPipe::beginning() const {
  const auto waiting = os::peek_pipe(fd_, room_bytes_);
  if (waiting.size() < bytes_free) return Beginning::TooShort;
  const DumpLength length = length_of_dump(waiting);
  return length.is_known || length.bytes > 0 ? Beginning::Dump : Beginning::Other;
}

bool DumpPipe::is_full() const { return state_ == State::Nearly && os::is_pipe_full(fd_); }

void DumpPipe::take(std::span<const std::byte> piece) {
  came_bytes_ += piece.size();
  const std::size_t known = std::min(piece.size(), ahead_bytes_);
  ahead_bytes_ -= known;
  const auto news = piece.subspan(known);
  const std::size_t room = is_cut_ ? 0 : bytes_max - std::min(bytes_max, bytes().size());
  is_cut_ |= bytes_.add(news.first(std::min(news.size(), room))) < news.size();
}

/// The end of a pipe that nobody has opened yet looks like the end of a dump, but to poll().
bool DumpPipe::has_hung_up() const {
  const int fd = fd_.get();
  const auto ready = kernel_->poll(std::span(&fd, 1), Milliseconds(0));
  return ready && !ready->empty();
}

DumpPipe::State DumpPipe::read() {
  if (state_ == State::Done) return state_;
  const std::size_t wanted = bytes_wanted();
  if (wanted == 0) return state_ = State::Nearly;
  if (is_to_fill_first()) return state_;
  const auto piece = std::make_unique_for_overwrite<std::byte[]>(wanted);
  const auto got = kernel_->read(fd_, std::span(piece.get(), wanted));
  if (!got) {
    if (got.error().code != ErrorCode::Unavailable) state_ = State::Done;
    return state_;
  }
  if (*got == 0) {
    if (state_ == State::Writing || has_hung_up()) state_ = State::Done;
    return state_;
  }
  state_ = State::Writing;
  make_room(came_bytes_ + *got);
  take(std::span(piece.get(), *got));
  if (const DumpLength length = length_of_dump(bytes()); !length.is_known && length.bytes == 0) let_end();
  if (bytes_wanted() == 0) state_ = State::Nearly;
  return state_;
}

void DumpPipe::clear() {
  bytes_.clear();
  ahead_bytes_ = 0;
}

}  // namespace firebreak::park
