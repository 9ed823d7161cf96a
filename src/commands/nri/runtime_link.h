// SPDX-License-Identifier: Apache-2.0
/// The connection with the runtime: made, kept, and made again whenever the runtime comes anew.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "commands/nri/session.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"

namespace firebreak::nri {

/// The link to a runtime, for the loop's thread.
class RuntimeLink {
 public:
  /// Time that a runtime may take until it has taken us and has configured us.
  static constexpr Nanoseconds registration_patience = Milliseconds(10'000);
  /// Pause between tries, as long as it takes nobody or ends us before it has taken us: doubled each time.
  static constexpr Nanoseconds first_pause = Milliseconds(500);
  static constexpr Nanoseconds longest_pause = Milliseconds(30'000);

  struct Surroundings {
    os::EventLoop& loop;
    const Clock& clock;
    PluginSession::Seating seating;
    std::function<void(const std::string&)> tell;  ///< one line for a person
  };
  RuntimeLink(std::string socket_path, Surroundings surroundings)
      : socket_path_(std::move(socket_path)), at_(std::move(surroundings)) {}

  /// Connects where that is due, and ends what has taken too long. To be called again and again. Waits for
  /// nobody; what comes is answered in the loop.
  void look();

 private:
  void connect();
  void read();
  void take(const std::string& bytes);
  void write();
  void note_runtime();
  void end(const Error& why);
  void say(const std::string& line);

  std::string socket_path_;
  Surroundings at_;
  std::string said_;
  os::Fd connection_;
  std::optional<PluginSession> session_;
  os::Watch watch_;  ///< ends before what it watches is closed
  std::string unsent_;
  Monotonic connected_at_{};
  Monotonic not_before_{};
  Nanoseconds pause_ = first_pause;
};

}  // namespace firebreak::nri
