// SPDX-License-Identifier: Apache-2.0
#include "watch/line_tail.h"

#include <array>
#include <utility>

#include "os/file.h"
#include "os/memory.h"

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
  auto file = os::open_regular_file(kernel_, path);
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
  read_now();
  const bool by_name = !path_.empty();
  if (by_name && (changes.replaced || !file_)) {
    reopen();
  } else if (is_cut_off()) {
    lines_.reset();
    position_ = 0;
    if (!os::go_to_beginning(file_.get())) return;
  } else {
    return;
  }
  read_now();
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
  if (!file_) return;
  std::array<std::byte, 4096> buffer{};
  while (true) {
    const Result<std::size_t> size = kernel_.read(file_, buffer);
    if (!size || *size == 0) return;
    position_ += *size;
    lines_.take({reinterpret_cast<const char*>(buffer.data()), *size}, on_line_);
  }
}

}  // namespace firebreak::watch
