// SPDX-License-Identifier: Apache-2.0
#include "ground/os/pipe_room.h"

#include <fcntl.h>
#include <poll.h>

#include "ground/os/file.h"
#include "ground/os/socket.h"

namespace firebreak::os {

/// Linux counts pages, however little is in each. A copy of all of them fills a pipe that holds as many.
bool is_pipe_full(const Fd& reading) {
  const int room_bytes = ::fcntl(reading.get(), F_GETPIPE_SZ);
  const auto copy = make_pipe();
  if (room_bytes <= 0 || !copy) return false;
  const auto wanted_bytes = static_cast<std::size_t>(room_bytes);
  if (resize_pipe(copy->writing, wanted_bytes) != wanted_bytes) return false;
  if (::tee(reading.get(), copy->writing.get(), wanted_bytes, SPLICE_F_NONBLOCK) <= 0) return false;
  pollfd room{copy->writing.get(), POLLOUT, 0};
  return ::poll(&room, 1, 0) == 0;
}

}  // namespace firebreak::os
