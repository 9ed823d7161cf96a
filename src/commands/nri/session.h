// SPDX-License-Identifier: Apache-2.0
/// A plugin says this to a runtime and answers it, in one connection. The class is pure: bytes in, bytes out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/nri/frames.h"
#include "commands/nri/seating.h"
#include "ground/base/result.h"

namespace firebreak::nri {

class PluginSession {
 public:
  using Seating = std::function<Result<std::optional<seats::SeatGrant>>(const Newcomer&)>;
  /// The runtime's log calls it "10-firebreak". `seating` is asked within receive().
  explicit PluginSession(Seating seating) : seating_(std::move(seating)) {}

  /// This is to be sent first.
  static std::string registration();
  /// This is to be sent in answer; empty means nothing. Each call is answered at once, also one that nobody
  /// knows. Unavailable: the runtime refuses us. Protocol: what came is no NRI; the connection is to be
  /// ended.
  Result<std::string> receive(std::string_view bytes);
  /// The end of the connection says this. Unavailable; Protocol: it came in the midst of a message.
  Error end() const;

  /// "containerd v1.7.24", as soon as it has told us and has taken us; empty before.
  std::string runtime() const { return is_registered_ && is_configured_ ? runtime_ : std::string(); }
  /// One line for each container that got a seat, was refused one, or runs without its own, since the last
  /// call.
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  Status hear_registered(const TtrpcMessage& message);
  std::string answer(const TtrpcMessage& message);
  Result<std::string> call(const std::string& method, const std::string& payload);
  Result<std::string> configure(const std::string& payload);
  Result<std::string> synchronize(const std::string& payload);
  Result<std::string> create_container(const std::string& payload);

  Seating seating_;
  FrameReader reader_;
  std::uint32_t last_stream_ = 0;
  bool is_registered_ = false;
  bool is_configured_ = false;
  std::string runtime_;
  std::map<std::string, Newcomer> pods_;  ///< The key is the id: a state that comes in parts keeps those that
                                          ///< ask for seats here.
  std::vector<std::string> news_;
};

}  // namespace firebreak::nri
