// SPDX-License-Identifier: Apache-2.0
/// Looks at other processes (os::Looks, os/kernel.h), done by the thread that asks.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace firebreak::os {

/// Of this thread, for as long as they last.
std::shared_ptr<Looks> direct_looks();

/// The whole of a small file. Protocol: it is larger than 16 MiB.
Result<std::string> read_small_file(const std::string& path);

/// The process behind a pidfd; 0: it is gone, or none that we can see.
pid_t process_behind(const Fd& pidfd);

}  // namespace firebreak::os
