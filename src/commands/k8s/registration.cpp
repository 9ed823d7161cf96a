// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/registration.h"

#include <algorithm>

namespace firebreak::k8s {

bool Registration::is_due(const KubeletLook& look, Monotonic now) {
  // a different kubelet, or the first: it is not to wait for what an earlier one did
  if (look.kubelet != with_) {
    with_ = look.kubelet;
    is_registered_ = false;
    not_before_ = now;
    pause_ = first_pause;
  }
  if (!with_) return false;
  if (look.watchers > 0) {
    unwatched_since_ = now;
    if (is_registered_) pause_ = first_pause;
  }
  const bool is_known = is_registered_ && look.has_own_socket && now - unwatched_since_ < watch_patience;
  return !is_known && now >= not_before_;
}

void Registration::note(bool is_registered, Monotonic now) {
  is_registered_ = is_registered;
  unwatched_since_ = now;
  not_before_ = now + pause_;
  pause_ = std::min(pause_ * 2, longest_pause);
}

}  // namespace firebreak::k8s
