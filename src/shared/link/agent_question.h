// SPDX-License-Identifier: Apache-2.0
/// Asks an agent for its status again and again.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ground/base/clock.h"
#include "shared/link/agent_link.h"

namespace firebreak::link {

/// Questions on one connection, for as long as that lives; the next question makes another connection. One
/// thread at a time may use it.
class AgentQuestion {
 public:
  explicit AgentQuestion(std::string socket_path) : socket_path_(std::move(socket_path)) {}

  /// The status as JSON (parse_status). Waits for it, for 2 s at most.
  Result<std::string> ask() {
    if (!link_ || link_->lost()) {
      auto link = AgentLink::connect(socket_path_);
      if (!link) return propagate(link);
      link_ = std::move(*link);
    }
    auto status = link_->status(answer_patience);
    if (!status) link_.reset();
    return status;
  }

 private:
  static constexpr Milliseconds answer_patience{2'000};

  std::string socket_path_;
  std::unique_ptr<AgentLink> link_;
};

}  // namespace firebreak::link
