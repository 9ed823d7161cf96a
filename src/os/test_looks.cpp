// SPDX-License-Identifier: Apache-2.0
/// For tests: the keeper of rights of an os::Broker.
#include "os/broker.h"
#include "os/rights_keeper.h"

int main() {
  firebreak::os::Socket socket{firebreak::os::Fd(firebreak::os::RightsKeeper::socket_descriptor)};
  firebreak::os::keep_rights(socket, firebreak::os::serve_looks);
  return 0;
}
