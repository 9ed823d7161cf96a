// SPDX-License-Identifier: Apache-2.0
#include "os/half_close.h"

#include <sys/socket.h>

namespace firebreak::os {

void end_sending(const Socket& socket) { ::shutdown(socket.fd().get(), SHUT_WR); }

}  // namespace firebreak::os
