// SPDX-License-Identifier: Apache-2.0
#include "park/dump_pipe.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "os/file.h"

namespace firebreak::park {
namespace {

constexpr std::size_t narrow_bytes = 4096;
constexpr std::size_t wide_bytes = std::size_t{1} << 20;
constexpr std::size_t bytes_a_read = std::size_t{1} << 20;

}  // namespace

Result<DumpPipe> DumpPipe::open(os::Kernel& kernel, const std::string& path) {
  if (auto made = os::make_fifo(path); !made) return propagate(made);
  auto fd = kernel.open(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return propagate(fd);
  os::resize_pipe(*fd, narrow_bytes);
  return DumpPipe(kernel, std::move(*fd));
}

DumpPipe::State DumpPipe::read() {
  if (state_ == State::Done) return state_;
  if (!std::exchange(is_wide_, true)) os::resize_pipe(fd_, wide_bytes);
  std::vector<std::byte> piece(bytes_a_read);
  const auto got = kernel_->read(fd_, piece);
  if (!got) {
    if (got.error().code != ErrorCode::Unavailable) state_ = State::Done;
    return state_;
  }
  // The end of a pipe that nobody has opened yet looks like the end of a dump.
  if (*got == 0) {
    if (state_ == State::Writing) state_ = State::Done;
    return state_;
  }
  state_ = State::Writing;
  const std::size_t kept = std::min(*got, bytes_max - bytes_.size());
  is_cut_ |= kept < *got;
  bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(kept));
  return state_;
}

void DumpPipe::clear() {
  bytes_.clear();
  bytes_.shrink_to_fit();
}

}  // namespace firebreak::park
