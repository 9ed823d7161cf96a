// SPDX-License-Identifier: Apache-2.0
/// Accepts at a socket that others share.
#pragma once

#include <functional>
#include <memory>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// Whoever shares the socket may switch its O_NONBLOCK off at any moment, and then accept() waits for the
/// next client. So it is called on a thread of its own, from the first one on. Nobody waits for that thread,
/// neither at the end: a signal (SIGURG, which otherwise does nothing) gets it out of an accept(). For one
/// thread.
class Accepter {
 public:
  /// Timeout: nobody waits to be accepted. The connection is closed as the listener is (Fd::close_by).
  using OnAccepted = std::function<void(Result<Fd>)>;

  explicit Accepter(Fd listener);
  Accepter(const Accepter&) = delete;
  Accepter& operator=(const Accepter&) = delete;
  ~Accepter();

  int listener() const;
  /// Calls back on the accepter's thread, perhaps after the accepter's end: what comes then is a connection
  /// all the same. One at a time. ResourceExhausted: there is no thread for it.
  Status accept(OnAccepted on_accepted);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace firebreak::os
