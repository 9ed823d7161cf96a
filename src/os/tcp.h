// SPDX-License-Identifier: Apache-2.0
/// Connections of a tenant's clients: what the kernel knows of a stream, whichever process wrote it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// A connection that waits at `listener`, close-on-exec; Timeout where none does. Never waits: makes the
/// listener non-blocking, for all who share it.
Result<Fd> accept_waiting(int listener);

/// Whether that is a TCP socket that listens.
bool is_tcp_listener(int descriptor);

/// How many bytes this TCP connection has taken from whoever wrote to it, since it was accepted: what the
/// peer has acknowledged (tcpi_bytes_acked, Linux 4.1) and what still waits for that (SIOCOUTQ). Exact where
/// nobody writes meanwhile and our side was not shut down. InvalidArgument: it is no TCP connection.
Result<std::uint64_t> bytes_taken(int connection);

/// As many of `bytes` as there is room for; 0: none. Never waits, never a SIGPIPE. Unavailable: the peer is
/// gone.
Result<std::size_t> send_waiting(int connection, std::span<const std::byte> bytes);

}  // namespace firebreak::os
