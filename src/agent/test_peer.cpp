// SPDX-License-Identifier: Apache-2.0
/// A process for tests to be: connects to the agent, hands the connection to the test over descriptor 3,
/// again whenever it is told to, and stays until the test lets go of it. So the agent sees a peer with a pid
/// of its own, and the test speaks for it. Each has what stands for a GPU address space where a test says
/// that everyone has one. One that is told "forking" has one besides, and a child of fork() that has it too
/// and ends a while after the test.
#include <unistd.h>

#include <string_view>

#include "os/memory.h"
#include "os/socket.h"

namespace {

using namespace firebreak;

constexpr std::byte hello{1};

/// From then on the test alone holds the connection, and its hang-up is one; the second word says so.
bool hand_over_a_connection(os::Socket& test, const char* agent) {
  auto connection = os::connect(agent, Milliseconds(5000));
  if (!connection) return false;
  const int descriptor = connection->fd().get();
  if (!test.send(std::span(&hello, 1), std::span(&descriptor, 1), Milliseconds(5000))) return false;
  connection->release().reset();
  return test.send(std::span(&hello, 1), {}, Milliseconds(5000)).has_value();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  os::Socket test{os::Fd(3)};
  const auto everyones = os::create_memory_file("test-everyones", 4096);
  const bool forks = count > 2 && std::string_view(arguments[2]) == "forking";
  const auto space = forks ? os::create_memory_file("test-space", 4096) : os::Fd();
  if (forks && ::fork() == 0) {
    test.release().reset();
    ::alarm(60);
    for (;;) ::pause();
  }
  do {
    if (!hand_over_a_connection(test, arguments[1])) return 3;
  } while (test.receive(Milliseconds(-1)));
  return 0;
}
