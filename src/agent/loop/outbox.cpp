// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/outbox.h"

#include <fmt/format.h>

#include "ground/os/fd.h"

namespace firebreak::agent {

Result<Outbox::State> Outbox::put(os::Socket& socket, std::string text, int descriptor) {
  const bool is_next = letters_.empty();
  const auto sent = is_next ? send(socket, text, descriptor) : State::Full;
  if (!sent || *sent == State::Sent || *sent == State::Gone) return sent;
  if (auto kept = keep(std::move(text), descriptor); !kept) return propagate(kept);
  return sent;
}

Status Outbox::keep(std::string text, int descriptor) {
  if (letters_.size() >= messages_max || bytes_ + text.size() > bytes_max) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("it does not read: {} messages of {} bytes wait", letters_.size(), bytes_));
  }
  Letter letter{std::move(text), {}};
  if (descriptor >= 0) {
    if (descriptors_ >= descriptors_max_) {
      return fail(ErrorCode::ResourceExhausted,
                  fmt::format("it does not read: {} messages with a descriptor wait", descriptors_));
    }
    auto duplicate = os::duplicate(descriptor);
    if (!duplicate) return propagate(duplicate, "a descriptor for it cannot wait");
    letter.descriptor = std::move(*duplicate);
    letter.descriptor.close_by(closer_);  // the descriptor may outlive all others
  }
  bytes_ += letter.text.size();
  descriptors_ += letter.descriptor ? 1 : 0;
  letters_.push_back(std::move(letter));
  return {};
}

Result<Outbox::State> Outbox::flush(os::Socket& socket) {
  while (!letters_.empty()) {
    const Letter& next = letters_.front();
    const auto sent = send(socket, next.text, next.descriptor ? next.descriptor.get() : -1);
    if (!sent || *sent != State::Sent) return sent;
    bytes_ -= next.text.size();
    descriptors_ -= next.descriptor ? 1 : 0;
    letters_.pop_front();
  }
  return State::Sent;
}

Result<Outbox::State> Outbox::send(os::Socket& socket, const std::string& text, int descriptor) {
  const std::span<const int> descriptors(&descriptor, descriptor >= 0 ? 1 : 0);
  const Status sent = socket.send(std::as_bytes(std::span(text)), descriptors, Milliseconds(0));
  if (sent) return State::Sent;
  switch (sent.error().code) {
    case ErrorCode::Timeout:
      return State::Full;
    case ErrorCode::ResourceExhausted:
      return State::Held;
    case ErrorCode::Unavailable:
      return State::Gone;
    default:
      return propagate(sent);
  }
}

}  // namespace firebreak::agent
