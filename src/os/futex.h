// SPDX-License-Identifier: Apache-2.0
/// Sleeping on a 32-bit word that processes share.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace firebreak::os {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

/// Sleeps while `word` holds `expected`, at most `timeout` (empty: for ever). False only when the time is up;
/// true may be spurious, so the caller looks at the word again. Works between processes.
bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::optional<Nanoseconds> timeout);

/// Wakes at most `count` sleepers of any process; returns how many were woken.
int futex_wake(std::atomic<std::uint32_t>& word, int count = INT_MAX);

}  // namespace firebreak::os
