// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/error_relay.h"

#include <signal.h>

#include <array>
#include <utility>

namespace firebreak::cli {
namespace {

constexpr int standard_error = 2;
/// No pipe holds more, unless a superuser says so.
constexpr std::size_t most_waiting = 1024 * 1024;

}  // namespace

Result<std::unique_ptr<ErrorRelay>> ErrorRelay::create() {
  auto channel = os::channel_like(standard_error);
  if (!channel) return propagate(channel, "standard error");
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  return std::unique_ptr<ErrorRelay>(new ErrorRelay(std::move(*channel), std::move(*loop)));
}

ErrorRelay::~ErrorRelay() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
}

Status ErrorRelay::start(OnLine on_line) {
  on_line_ = std::move(on_line);
  channel_.theirs.reset();
  auto readable = loop_->watch_readable(channel_.ours.get(), [this] {
    if (pass_on() == 0) close();
  });
  if (!readable) return propagate(readable, "standard error");
  readable_ = std::move(*readable);
  // A thread of its own: while ours is full, signals still reach the tenant.
  thread_ = std::thread([this] { serve(); });
  return {};
}

void ErrorRelay::serve() {
  // Where nobody reads ours any more, it is the tenant that is told so, at its next word.
  (void)os::hold_signals({SIGPIPE});
  loop_->run();
  // Somebody whom the tenant left behind may write without end.
  for (std::size_t passed = 0; channel_.ours && passed < most_waiting;) {
    const std::size_t size = pass_on();
    if (size == 0) break;
    passed += size;
  }
  close();
}

/// Bytes; 0: there is nothing to read, or nobody to pass it on to.
std::size_t ErrorRelay::pass_on() {
  std::array<std::byte, 4096> buffer{};
  const Result<std::size_t> size = kernel_.read(channel_.ours, buffer);
  if (!size || *size == 0) return 0;
  const std::span<const std::byte> bytes(buffer.data(), *size);
  const Status written = os::write_all(standard_error, bytes);
  // A full disk is none of the tenant's business; a reader that has gone would have been.
  if (!written && written.error().code == ErrorCode::Protocol) return 0;
  lines_.take({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, on_line_);
  return *size;
}

void ErrorRelay::close() {
  readable_.cancel();
  channel_.ours.reset();
}

}  // namespace firebreak::cli
