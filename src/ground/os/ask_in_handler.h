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

}  // namespace firebreak::os
