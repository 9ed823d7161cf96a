// SPDX-License-Identifier: Apache-2.0
/// A process for tests to be: connects to the agent, hands the connection to the test over descriptor 3,
/// again whenever it is told to, and stays until the test lets go of it. So the agent sees a peer with a pid
/// of its own, and the test speaks for it. Each has what stands for a GPU address space where a test says
/// that everyone has one. One that is told "forking" has one besides, and a child of fork() that has it too
/// and ends a while after the test. One that is told "threaded" has one besides, and goes on in another
/// thread than its first, which ends. One that is told "bequeathing" has one besides, and so has the program
/// that it becomes. One that is told "user=N" is that user's and of group 65534 from its first connection on,
/// and has a child that does nothing. Each becomes another program when it is told to, and stays that.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>

#include "ground/os/memory.h"
#include "ground/os/socket.h"

namespace {

using namespace firebreak;

constexpr std::byte hello{1};
constexpr std::byte become_another{2};

/// The test alone holds the connection from then on, and its hang-up is one; the second word says so.
bool hand_over_a_connection(os::Socket& test, const char* agent) {
  auto connection = os::connect(agent, Milliseconds(5000));
  if (!connection) return false;
  const int descriptor = connection->fd().get();
  if (!test.send(std::span(&hello, 1), std::span(&descriptor, 1), Milliseconds(5000))) return false;
  connection->release().reset();
  return test.send(std::span(&hello, 1), {}, Milliseconds(5000)).has_value();
}

int live(os::Socket& test, const char* agent) {
  for (;;) {
    if (!hand_over_a_connection(test, agent)) return 3;
    const auto told = test.receive(Milliseconds(-1));
    if (!told) return 0;
    if (told->bytes.at(0) == become_another) ::execlp("sleep", "sleep", "60", nullptr);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  os::Socket test{os::Fd(3)};
  const auto everyones = os::create_memory_file("test-everyones", 4096);
  const std::string_view how = count > 2 ? arguments[2] : "";
  const auto space = how.empty() ? Result<os::Fd>() : os::create_memory_file("test-space", 4096);
  constexpr std::string_view of_user = "user=";
  if (how.starts_with(of_user)) {
    const auto user = static_cast<uid_t>(std::stoul(std::string(how.substr(of_user.size()))));
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(user, user, user) != 0) return 5;
  }
  if ((how == "forking" || how.starts_with(of_user)) && ::fork() == 0) {
    test.release().reset();
    if (how != "forking")
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever reads our output waits for all who have it
    ::alarm(60);
    for (;;) ::pause();
  }
  if (how == "bequeathing" && ::fcntl(space->get(), F_SETFD, 0) != 0) return 4;
  if (how == "threaded") {
    std::thread([&] {
      (void)live(test, arguments[1]);
      ::kill(::getpid(), SIGKILL);  // the first thread is there no more to return
    }).detach();
    ::syscall(SYS_exit, 0);  // This thread alone has it.
  }
  return live(test, arguments[1]);
}
