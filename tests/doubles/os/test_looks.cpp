// SPDX-License-Identifier: Apache-2.0
/// Tests use this: the keeper of rights of an os::Broker.
#include <string>
#include <vector>

#include "ground/os/broker.h"
#include "ground/os/rights_keeper.h"

int main() {
  firebreak::os::Socket socket{firebreak::os::Fd(firebreak::os::RightsKeeper::socket_descriptor)};
  const std::vector<std::string> links{"/memfd:content (deleted)", "/memfd:nvidia-uvm (deleted)",
                                       "/dev/null"};
  firebreak::os::keep_rights(
      socket, [&links](firebreak::os::Socket& asker) { firebreak::os::serve_looks(asker, links); });
  return 0;
}
