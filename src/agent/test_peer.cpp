// SPDX-License-Identifier: Apache-2.0
/// A process for tests to be: connects to the agent, hands the connection to the test over descriptor 3, and
/// stays until the test lets go of it. So the agent sees a peer with a pid of its own, and the test speaks
/// for it.
#include "os/socket.h"

int main(int count, char** arguments) {
  using namespace firebreak;
  if (count != 2) return 2;
  auto connection = os::connect(arguments[1], Milliseconds(5000));
  if (!connection) return 3;
  os::Socket test{os::Fd(3)};
  const std::byte hello{1};
  const int descriptor = connection->fd().get();
  if (!test.send(std::span(&hello, 1), std::span(&descriptor, 1), Milliseconds(5000))) return 4;
  // From here on the test alone holds the connection, and its hang-up is one; it waits to be told so.
  connection->release().reset();
  if (!test.send(std::span(&hello, 1), {}, Milliseconds(5000))) return 4;
  (void)test.receive(Milliseconds(-1));
  return 0;
}
