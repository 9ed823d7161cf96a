// SPDX-License-Identifier: Apache-2.0
/// The connections of a tenant's own clients: the socket at which they come, and who has come. They are kept
/// here from the moment they are accepted, so that none is lost with the process that serves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::agent {

/// Belongs to the loop's thread, and never waits.
class ClientConnections {
 public:
  /// Beyond them clients wait to be accepted.
  static constexpr std::size_t most = 1024;

  /// One connection; `descriptor` stays ours.
  struct Entry {
    std::uint64_t id = 0;
    int descriptor = -1;
    bool is_new = false;
  };

  /// In the place of the socket before. InvalidArgument: it is none that clients come to over TCP.
  Status listen(os::Fd listener);
  /// -1: there is none.
  int listener() const { return listener_ ? listener_.get() : -1; }

  /// The first with an id above `after`: who is here, or else who waits to be accepted; Timeout: nobody.
  Result<Entry> next(std::uint64_t after);
  /// Who is not here has been released already.
  void release(std::uint64_t id) { changes_ += open_.erase(id); }

  const std::map<std::uint64_t, os::Fd>& open() const { return open_; }
  /// Another number whenever open() is another set.
  std::uint64_t changes() const { return changes_; }
  /// Of all that were ever accepted; no id is given twice.
  std::uint64_t last_id() const { return last_id_; }
  void restore(std::uint64_t last_id, os::Fd listener, std::map<std::uint64_t, os::Fd> open);

 private:
  os::Fd listener_;
  std::map<std::uint64_t, os::Fd> open_;
  std::uint64_t last_id_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace firebreak::agent
