// SPDX-License-Identifier: Apache-2.0
/// A tenant's own clients: the agent keeps their connections, and whoever is the active one writes to them.
#include "ground/os/socket.h"
#include "program/client/session.h"

namespace firebreak::client {
namespace {

/// Longer than a fenced process lives; one that has died gives the mutex back at once.
constexpr Milliseconds send_timeout{1000};

struct GivenBack {
  os::InterprocessMutex& mutex;
  ~GivenBack() { mutex.unlock(); }
};

}  // namespace

Outcome<void> Session::for_the_active() {
  if (role_ != FB_ROLE_ACTIVE) return failure(FB_ERROR_INVALID_ARGUMENT, "a standby has no clients");
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  return {};
}

Outcome<void> Session::listen(int descriptor) {
  if (auto may = for_the_active(); !may) return may;
  const auto answer = link_->ask(abi::Listen{}, descriptor);
  if (!answer) return agent_failure(answer.error());
  return {};
}

Outcome<os::Fd> Session::listener() {
  if (auto may = for_the_active(); !may) return tl::unexpected(may.error());
  auto answer = link_->ask(abi::GiveListener{});
  if (!answer) return agent_failure(answer.error());
  if (answer->descriptors.size() != 1) return failure(FB_ERROR_CORRUPT, "the agent sent no socket");
  return std::move(answer->descriptors.front());
}

Outcome<Session::ClientConnection> Session::next_connection(std::uint64_t after) {
  if (auto may = for_the_active(); !may) return tl::unexpected(may.error());
  auto answer = link_->ask(abi::NextConnection{after});
  if (!answer) return agent_failure(answer.error());
  const auto* given = std::get_if<abi::ClientConnection>(&answer->message);
  if (given == nullptr) return failure(FB_ERROR_TIMEOUT, "nobody waits");
  if (answer->descriptors.size() != 1) return failure(FB_ERROR_CORRUPT, "the agent sent no connection");
  return ClientConnection{given->id, std::move(answer->descriptors.front())};
}

/// A process that was replaced between two looks at the epoch holds the mutex while it sends; its successor
/// waits for it, and then sees what it sent.
Outcome<std::uint64_t> Session::send(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (auto may = for_the_active(); !may) return tl::unexpected(may.error());
  if (!sending_) {
    auto mutex = os::InterprocessMutex::of(page_file_.get());
    if (!mutex) return failure(FB_ERROR_NO_MEMORY, to_string(mutex.error()));
    sending_.emplace(std::move(*mutex));
  }
  if (auto taken = sending_->lock(send_timeout); !taken)
    return failure(FB_ERROR_TIMEOUT, to_string(taken.error()));
  const GivenBack at_the_end{*sending_};
  if (fenced()) return failure(FB_ERROR_FENCED, "another process is active now");
  const auto there = os::bytes_taken(descriptor);
  if (!there) return failure(FB_ERROR_INVALID_ARGUMENT, to_string(there.error()));
  if (*there < offset) return failure(FB_ERROR_INVALID_ARGUMENT, "bytes before these have not been sent");
  if (*there - offset >= bytes.size()) return *there;
  const auto sent = os::send_waiting(descriptor, bytes.subspan(*there - offset));
  if (!sent) return failure(FB_ERROR_CLIENT_GONE, to_string(sent.error()));
  return *there + *sent;
}

Outcome<void> Session::release_connection(std::uint64_t id) {
  if (auto may = for_the_active(); !may) return may;
  const auto answer = link_->ask(abi::ReleaseConnection{id});
  if (!answer) return agent_failure(answer.error());
  return {};
}

}  // namespace firebreak::client
