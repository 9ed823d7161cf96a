// SPDX-License-Identifier: Apache-2.0
/// The agent's side of its shelves (agent/service/shelf.h): descriptors that are to outlive it, put away by
/// name. What is put away costs the agent no descriptor. The service manager keeps one a shelf: its socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/service/service_manager.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"
#include "ground/os/socket.h"

namespace firebreak::agent {

/// "shelf/3": under which the service manager keeps a shelf's socket.
std::string shelf_name(std::uint32_t number);
bool is_shelf(const std::string& name);

/// Whoever keeps its socket ends it so: returns when that process is gone, or does not go.
void end_shelf(os::Socket socket);

/// The shelves. For one thread, which waits: a question for its answer, at most `patience`. A shelf that did
/// not answer is not waited for again before `pause` is over. So this is none for the agent's loop: see
/// ShelfQueue.
class Shelves {
 public:
  /// `command`: of a process that serves as a shelf on descriptor `socket_descriptor`. The references outlive
  /// it.
  Shelves(os::Kernel& kernel, ServiceManager& manager, std::vector<std::string> command)
      : kernel_(kernel), manager_(manager), command_(std::move(command)) {}
  Shelves(const Shelves&) = delete;
  Shelves& operator=(const Shelves&) = delete;
  /// Ends shelves that nobody keeps.
  ~Shelves();

  static constexpr int socket_descriptor = 3;
  static constexpr Milliseconds patience{2000};
  static constexpr Milliseconds pause{1000};

  /// Takes up those of the agent before, out of what the service manager had.
  void take_up(std::map<std::string, os::Fd>& descriptors);

  /// Puts a descriptor in the place of what had that name. ResourceExhausted: another shelf was needed, and
  /// there is none.
  Status put(const std::string& name, int descriptor);
  /// One for each name; none where nothing has that name. Timeout: a shelf that may have one of them does not
  /// answer now.
  Result<std::vector<os::Fd>> get(std::span<const std::string> names);
  /// Says for each name whether it is there. Timeout: as above.
  Result<std::vector<bool>> have(std::span<const std::string> names);
  /// A name that ends in '/' stands for all that begin so. A shelf that is empty then ends. One that does not
  /// answer is told before anything else is asked of it, or by drop_rest().
  void drop(const std::string& name);
  /// Drops what could not be dropped before. False: not all could be now, either.
  bool drop_rest();

  /// Ends all of them, with what they hold; returns when they are gone, or do not go.
  void end_all();

  std::size_t size() const { return shelves_.size(); }
  /// Returns those that have not answered, and that have since not been heard of.
  std::vector<std::string> silent() const;

 private:
  struct One {
    os::Socket socket;
    pid_t pid = 0;  ///< 0: another agent started it
    bool is_kept = true;
    std::optional<Monotonic> silent_until = {};  ///< none: it has answered
    std::vector<std::string> undropped = {};
    bool is_empty = false;  ///< the shelf said so, and was given nothing since
  };
  struct Answer {
    std::string text;
    std::vector<os::Fd> descriptors;
  };

  Status add();
  /// Timeout also where it is not to be waited for now.
  Result<Answer> ask(One& shelf, char what, std::span<const std::string> names, int descriptor = -1);
  Result<Answer> ask_and_wait(One& shelf, char what, std::span<const std::string> names, int descriptor);
  Status drop_what_is_left(One& shelf);
  /// Asks all shelves in turn which of the names are there. Timeout: not all have said so.
  Result<std::vector<bool>> look(char what, std::span<const std::string> names, std::vector<os::Fd>* found);
  bool put_on(std::uint32_t number, const std::string& name, int descriptor);
  void forget(std::uint32_t number);
  void reap();

  os::Kernel& kernel_;
  ServiceManager& manager_;
  std::vector<std::string> command_;
  std::map<std::uint32_t, One> shelves_;
  std::uint64_t questions_ = 0;
  std::vector<pid_t> leaving_;  ///< children of ours that are about to end
};

}  // namespace firebreak::agent
