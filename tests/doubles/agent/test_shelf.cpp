// SPDX-License-Identifier: Apache-2.0
/// A shelf for the agent's tests, as firebreakd starts them.
#include "agent/service/shelf.h"
#include "agent/service/shelves.h"

int main() {
  using namespace firebreak;
  os::Socket socket{os::Fd(agent::Shelves::socket_descriptor)};
  agent::serve_shelf(socket);
  (void)socket.release().release();
}
