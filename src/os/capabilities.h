// SPDX-License-Identifier: Apache-2.0
/// The parts of root's rights (capabilities(7)) that the calling thread has, and how they are given up. They
/// are each thread's own: call these before there are other threads.
#pragma once

#include <functional>
#include <span>

#include "base/result.h"

namespace firebreak::os {

/// As Linux numbers them.
enum class Capability : unsigned { DacReadSearch = 2, SetPcap = 8, SysPtrace = 19 };

/// Whether this thread may use it.
bool has_capability(Capability which);

/// All but these are given up, for good where this thread runs no other program.
Status give_up_all_capabilities_but(std::span<const Capability> kept);

/// Given up for good: it goes from the permitted, effective, inheritable and ambient set. So that no program
/// that is started gets it back, it also goes from the bounding set. Where that may not be changed (it needs
/// CAP_SETPCAP), root sets no_new_privs instead, and everybody else leaves it at that.
/// `is_well_without` is asked first, while it is not in the effective set; on false everything is put back,
/// and PermissionDenied is the answer.
Status give_up_capability(Capability which, const std::function<bool()>& is_well_without);

}  // namespace firebreak::os
