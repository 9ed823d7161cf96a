// SPDX-License-Identifier: Apache-2.0
/// For tests: a helper of os::Broker.
#include "os/broker.h"

int main() {
  firebreak::os::Socket socket{firebreak::os::Fd(firebreak::os::Broker::socket_descriptor)};
  firebreak::os::serve_looks(socket);
  return 0;
}
