// SPDX-License-Identifier: Apache-2.0
#include "ground/os/ask_in_handler.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace firebreak::os {

std::size_t ask_in_handler(const sockaddr_un& listener, std::span<const char> question,
                           std::span<char> answer, int patience_ms) {
  const int connection = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) return 0;
  pollfd readable{connection, POLLIN, 0};
  ssize_t size = 0;
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&listener), sizeof(listener)) == 0 &&
      ::send(connection, question.data(), question.size(), MSG_NOSIGNAL) > 0 &&
      ::poll(&readable, 1, patience_ms) == 1) {
    size = ::recv(connection, answer.data(), answer.size(), MSG_DONTWAIT);
  }
  ::close(connection);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

void stand_until_ended_by(int signal, int patience_ms) {
  sigset_t through;
  ::sigemptyset(&through);
  ::sigaddset(&through, signal);
  ::sigprocmask(SIG_UNBLOCK, &through, nullptr);
  timespec left{patience_ms / 1000, (patience_ms % 1000) * 1'000'000L};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  for (;;) ::kill(::getpid(), signal);
}

}  // namespace firebreak::os
