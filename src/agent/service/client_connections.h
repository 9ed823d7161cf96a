// SPDX-License-Identifier: Apache-2.0
/// The connections of a tenant's own clients: the socket at which they come, and who has come. They are kept
/// here from the moment they are accepted, so that none is lost with the process that serves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/accepter.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"

namespace firebreak::agent {

/// Belongs to the loop's thread, and never waits: the tenant shares the socket, and can make an accept() on
/// it last as long as it likes (ground/os/accepter.h).
class ClientConnections {
 public:
  /// Largest number; clients beyond it wait to be accepted.
  static constexpr std::size_t most = 1024;
  /// Largest number that waits for one accept(); each process asks one question at a time.
  static constexpr std::size_t most_askers = 64;

  /// One connection; `descriptor` stays ours.
  struct Entry {
    std::uint64_t id = 0;
    int descriptor = -1;
  };
  /// Makes it outlive us; calls back when it does, also at once, also when we are gone.
  using Keep = std::function<void(const Entry& added, std::function<void()> kept)>;
  /// Timeout: nobody waits to be accepted.
  using OnNext = std::function<void(const Result<Entry>& next)>;

  ClientConnections() = default;
  ClientConnections(const ClientConnections&) = delete;
  ClientConnections& operator=(const ClientConnections&) = delete;
  /// Nobody is called back any more.
  ~ClientConnections();

  /// Listens in the place of the socket before. InvalidArgument: it is none that clients come to over TCP.
  Status listen(os::Fd listener);
  /// -1: there is none.
  int listener() const { return accepter_ ? accepter_->listener() : -1; }

  /// Tells the first with an id above `after`, at once where it is here, else when who waits has been
  /// accepted and `keep` has called back. Whoever asks meanwhile is told the same, in order. The loop
  /// outlives us.
  void next(os::EventLoop& loop, std::uint64_t after, const Keep& keep, OnNext tell);
  /// Nobody waits for a connection.
  bool is_idle() const { return !is_accepting_ && unkept_.empty(); }
  /// Releases a connection; one that is not here has been released already.
  void release(std::uint64_t id) { changes_ += open_.erase(id); }

  const std::map<std::uint64_t, os::Fd>& open() const { return open_; }
  /// Returns another number whenever open() is another set.
  std::uint64_t changes() const { return changes_; }
  /// Returns the last id of all that were ever accepted; no id is given twice.
  std::uint64_t last_id() const { return last_id_; }
  void restore(std::uint64_t last_id, os::Fd listener, std::map<std::uint64_t, os::Fd> open);

 private:
  struct Inbox;

  void listen_at(os::Fd listener);
  Status accept(os::EventLoop& loop, const Keep& keep);
  void take(std::uint64_t accepter, Result<os::Fd> accepted, const Keep& keep);
  void kept(std::uint64_t id);
  void tell_all(const Result<Entry>& next);

  std::unique_ptr<os::Accepter> accepter_;  ///< none: nowhere
  std::uint64_t accepters_ = 0;             ///< number of accepters that there have been
  bool is_accepting_ = false;               ///< the latest one is accepting
  std::vector<OnNext> askers_;
  std::set<std::uint64_t> unkept_;  ///< ids of those that `keep` has not called back for
  std::map<std::uint64_t, os::Fd> open_;
  std::uint64_t last_id_ = 0;
  std::uint64_t changes_ = 0;
  std::shared_ptr<Inbox> inbox_;  ///< none: nothing was ever accepted
};

}  // namespace firebreak::agent
