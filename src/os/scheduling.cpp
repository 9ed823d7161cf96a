// SPDX-License-Identifier: Apache-2.0
#include "os/scheduling.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace firebreak::os {
namespace {

/// Linux's struct sched_attr of its first version; the C library has no call for it.
struct SchedulingAttributes {
  std::uint32_t size = 48;
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 1;  ///< SCHED_FLAG_RESET_ON_FORK
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

constexpr std::uint64_t shortest_turn_ns = 100'000;

bool take_real_time_priority() {
  sched_param parameter{};
  parameter.sched_priority = ::sched_get_priority_min(SCHED_FIFO);
  return ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter) == 0;
}

/// An older kernel takes it without an error and changes nothing, so what it says now counts.
bool take_short_turns() {
  SchedulingAttributes attributes;
  attributes.runtime_ns = shortest_turn_ns;
  if (::syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return false;
  return ::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 &&
         attributes.runtime_ns == shortest_turn_ns;
}

}  // namespace

Status run_as_soon_as_woken() {
  if (take_real_time_priority() || take_short_turns()) return {};
  return fail(ErrorCode::Unsupported, "a woken thread waits for busy ones",
              "grant CAP_SYS_NICE, or use Linux 6.12 or later");
}

}  // namespace firebreak::os
