// SPDX-License-Identifier: Apache-2.0
/// Decides when to register with the kubelet, and when again. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "ground/base/clock.h"

namespace firebreak::k8s {

/// One socket, whatever it is called: who makes a new one under the same name has another.
struct SocketIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t changed_ns = 0;  ///< inode numbers are given out again
  auto operator<=>(const SocketIdentity&) const = default;
};

struct KubeletLook {
  std::optional<SocketIdentity> kubelet;  ///< empty: there is no kubelet.sock
  bool has_own_socket = false;            ///< ours is where the kubelet looks for it
  std::size_t watchers = 0;               ///< streams of ListAndWatch that are open
};

/// A kubelet that starts takes all sockets from the folder and makes its own anew. One that lost our stream
/// asks for it only after we have registered again.
class Registration {
 public:
  static constexpr Nanoseconds first_pause = Milliseconds(500);
  static constexpr Nanoseconds longest_pause = Milliseconds(30'000);
  /// Nobody watches: so long a kubelet may take between its answer and its ListAndWatch, or to come back.
  static constexpr Nanoseconds watch_patience = Milliseconds(5'000);

  /// Tells whether to register now.
  bool is_due(const KubeletLook& look, Monotonic now);
  /// Notes what came of it; each try that fails or that nobody answers by a stream doubles the pause to the
  /// next.
  void note(bool is_registered, Monotonic now);

 private:
  std::optional<SocketIdentity> with_;  ///< the kubelet that was last seen
  bool is_registered_ = false;
  Monotonic unwatched_since_{};
  Monotonic not_before_{};
  Nanoseconds pause_ = first_pause;
};

}  // namespace firebreak::k8s
