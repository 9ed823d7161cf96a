// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/runtime_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "ground/os/socket.h"

namespace firebreak::nri {
namespace {

constexpr std::size_t most_bytes_at_once = std::size_t{256} * 1024;
/// Limit of answers that a runtime does not read.
constexpr std::size_t most_unsent_bytes = std::size_t{16} * 1024 * 1024;

}  // namespace

void RuntimeLink::say(const std::string& line) {
  if (std::exchange(said_, line) != line) at_.tell(line);
}

void RuntimeLink::look() {
  const Monotonic now = at_.clock.now();
  if (!session_) {
    if (now >= not_before_) connect();
    return;
  }
  if (session_->runtime().empty() && now - connected_at_ >= registration_patience)
    end({ErrorCode::Timeout, "the runtime has not taken the plugin in time", {}});
}

void RuntimeLink::connect() {
  auto connection = os::connect_stream(socket_path_);
  if (!connection) return say(fmt::format("waits for a runtime: {}", to_string(connection.error())));
  connection_ = std::move(*connection);
  auto watch = at_.loop.watch(
      connection_.get(), [this] { read(); }, [this] { write(); });
  if (!watch) {
    connection_.reset();
    return say(to_string(watch.error()));
  }
  watch_ = std::move(*watch);
  session_.emplace(at_.seating);
  connected_at_ = at_.clock.now();
  unsent_ = PluginSession::registration();
  write();
}

void RuntimeLink::read() {
  const auto bytes = os::read_waiting(connection_.get(), most_bytes_at_once);
  if (!bytes) return end(session_->end());
  if (!bytes->empty()) take(*bytes);
}

void RuntimeLink::take(const std::string& bytes) {
  const auto answers = session_->receive(bytes);
  for (const std::string& line : session_->take_news()) at_.tell(line);
  if (!answers) return end(answers.error());
  note_runtime();
  unsent_ += *answers;
  if (unsent_.size() > most_unsent_bytes)
    return end({ErrorCode::Protocol, "the runtime does not read what it asked for", {}});
  write();
}

void RuntimeLink::write() {
  const auto sent = os::send_waiting(connection_.get(), std::as_bytes(std::span(unsent_)));
  if (!sent) return end(session_->end());
  unsent_.erase(0, *sent);
  watch_.expect_writable(!unsent_.empty());
}

void RuntimeLink::note_runtime() {
  const std::string runtime = session_->runtime();
  if (runtime.empty()) return;
  pause_ = first_pause;
  say(fmt::format("{} asks for each container", runtime));
}

void RuntimeLink::end(const Error& why) {
  say(to_string(why));
  watch_.cancel();
  connection_.reset();
  session_.reset();
  unsent_.clear();
  not_before_ = at_.clock.now() + pause_;
  pause_ = std::min(pause_ * 2, longest_pause);
}

}  // namespace firebreak::nri
