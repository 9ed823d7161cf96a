// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/line_tail.h"

#include <array>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/memory.h"

namespace firebreak::watch {

Status LineTail::follow_name(const std::string& directory, const std::string& name) {
  auto changes = os::FileWatch::of(directory, name);
  if (!changes) return propagate(changes);
  path_ = directory + "/" + name;
  if (auto file = os::open_regular_file(kernel_, path_)) {
    file_ = std::move(*file);
    position_ = os::go_to_end(file_.get()).value_or(0);
  }
  return listen(std::move(*changes));
}

Status LineTail::follow_file(const std::string& path) {
  auto file = os::open_regular_file_of_others(kernel_, path);
  if (!file) return propagate(file);
  auto changes = os::FileWatch::of(*file);
  if (!changes) return propagate(changes);
  const auto end = os::go_to_end(file->get());
  if (!end) return propagate(end);
  file_ = std::move(*file);
  position_ = *end;
  return listen(std::move(*changes));
}

Status LineTail::listen(os::FileWatch changes) {
  changes_ = std::move(changes);
  auto readable = loop_.watch_readable(changes_->fd().get(), [this] { changed(); });
  if (!readable) return propagate(readable);
  readable_ = std::move(*readable);
  return {};
}

void LineTail::changed() {
  const os::FileWatch::Changes changes = changes_->read();
  if (!changes.written) return;
  was_replaced_ |= changes.replaced;
  go_on();
}

/// One turn. Other callbacks of the loop have theirs before the next.
void LineTail::go_on() {
  skip_unless_within(most_behind);
  if (!read_to_end(most_at_once)) return go_on_later();
  if (begin_anew() && !read_to_end(most_at_once)) go_on_later();
}

/// The next change of the file goes on where there is no timer.
void LineTail::go_on_later() {
  if (auto turn = loop_.after({}, [this] { go_on(); })) next_turn_ = std::move(*turn);
}

bool LineTail::begin_anew() {
  const bool by_name = !path_.empty();
  if (by_name && (std::exchange(was_replaced_, false) || !file_)) {
    reopen();
    return true;
  }
  if (!is_cut_off()) return false;
  lines_.reset();
  position_ = 0;
  return os::go_to(file_.get(), 0).has_value();
}

/// Nobody takes what is left of a line for a line.
void LineTail::skip_unless_within(std::uint64_t bytes) {
  const auto size = os::file_size(file_.get());
  if (!size || *size <= position_ || *size - position_ <= bytes) return;
  const std::uint64_t to = *size - last_part;
  if (!os::go_to(file_.get(), to)) return;
  const std::uint64_t skipped = to - std::exchange(position_, to);
  lines_.skip_line();
  if (on_skipped_) on_skipped_(skipped);
}

/// False: there is more.
bool LineTail::read_to_end(std::uint64_t most) {
  if (!file_) return true;
  std::array<std::byte, 4096> buffer{};
  for (std::uint64_t got = 0; got < most;) {
    const Result<std::size_t> size = kernel_.read(file_, buffer);
    if (!size || *size == 0) return true;
    got += *size;
    position_ += *size;
    lines_.take({reinterpret_cast<const char*>(buffer.data()), *size}, on_line_);
  }
  return false;
}

bool LineTail::is_cut_off() const {
  const auto size = os::file_size(file_.get());
  return size && *size < position_;
}

/// The file may not be there yet; it is opened again when it appears.
void LineTail::reopen() {
  lines_.reset();
  position_ = 0;
  auto file = os::open_regular_file(kernel_, path_);
  file_ = file ? std::move(*file) : os::Fd();
}

void LineTail::read_now() {
  skip_unless_within(last_part);
  (void)read_to_end(last_part);
}

}  // namespace firebreak::watch
