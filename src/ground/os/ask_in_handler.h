// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <span>

namespace firebreak::os {

/// Sends one message to who listens at that socket and waits for one answer, as signal handlers may: by
/// system calls alone. The bytes of the answer; 0: there was none in time.
std::size_t ask_in_handler(const sockaddr_un& listener, std::span<const char> question,
                           std::span<char> answer, int patience_ms);

/// Stands still until that signal, which is let through and has its default, ends the process; after
/// `patience_ms` it is raised here. As signal handlers may.
[[noreturn]] void stand_until_ended_by(int signal, int patience_ms);

}  // namespace firebreak::os
