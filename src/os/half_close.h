// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/socket.h"

namespace firebreak::os {

/// The peer reads what was sent, and then that we are gone; what it sends can still be received.
void end_sending(const Socket& socket);

}  // namespace firebreak::os
