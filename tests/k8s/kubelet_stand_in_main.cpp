// SPDX-License-Identifier: Apache-2.0
// A kubelet for a machine that has none: kubelet-stand-in FOLDER. One line of JSON for each change of what it
// was told, until its standard input ends.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/doubles/k8s/kubelet_stand_in.h"

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    std::fputs("usage: kubelet-stand-in FOLDER\n", stderr);
    return 2;
  }
  firebreak::k8s::KubeletStandIn kubelet(arguments[1]);
  std::jthread writer([&kubelet](const std::stop_token& stop) {
    std::string told;
    while (!stop.stop_requested()) {
      const nlohmann::json now = {{"registrations", kubelet.registrations().size()},
                                  {"seats", kubelet.health()}};
      if (now.dump() != told) {
        told = now.dump();
        std::puts(told.c_str());
        std::fflush(stdout);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  char ignored = 0;
  while (::read(STDIN_FILENO, &ignored, 1) > 0) {
  }
  return 0;
}
