// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/robust_mutex.h"

#include <cerrno>

namespace firebreak::softgpu {

void RobustMutex::initialise() {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&mutex_, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
}

void RobustMutex::lock() {
  if (::pthread_mutex_lock(&mutex_) == EOWNERDEAD) ::pthread_mutex_consistent(&mutex_);
}

}  // namespace firebreak::softgpu
