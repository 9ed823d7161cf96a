// SPDX-License-Identifier: Apache-2.0
/// A mutex in shared memory, for threads of any process. One whose holder died is free again.
#pragma once

#include <pthread.h>

namespace firebreak::softgpu {

/// BasicLockable: std::lock_guard holds it. What it guards must be usable however far its holder came. All
/// zero is no valid state: initialise() first, once.
class RobustMutex {
 public:
  void initialise();
  void lock();
  void unlock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace firebreak::softgpu
