// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/orderly_end.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "ground/os/ask_in_handler.h"
#include "ground/os/self.h"
#include "program/virtual/inside_call.h"
#include "shared/abi/wire.h"

namespace firebreak::guard {
namespace {

using virtual_driver::InsideCall;

/// How long the agent may take to answer. It answers from memory.
constexpr int answer_patience_ms = 1000;

/// All that the handler needs, made before: it may do nothing but system calls.
struct Wish {
  sockaddr_un agent{};
  std::array<char, 1024> question{};
  std::size_t question_bytes = 0;
  pid_t process = 0;
  std::atomic<bool> is_told{false};
};
constinit Wish wish;

/// The agent has taken it on. Whoever refuses it, or does not answer, is no help.
bool is_taken_on() {
  std::array<char, 1024> answer{};
  const std::size_t size =
      os::ask_in_handler(wish.agent, {wish.question.data(), wish.question_bytes}, answer, answer_patience_ms);
  return std::string_view(answer.data(), size).find("\"done\"") != std::string_view::npos;
}

void on_sigterm(int number) {
  const int before = errno;
  const bool is_ours = ::getpid() == wish.process && !wish.is_told.exchange(true);
  const bool is_taken = is_ours && is_taken_on();
  ::signal(number, SIG_DFL);
  if (!is_taken) ::raise(number);  // it comes when this handler has returned
  // The program is at its end: no call of its own is interrupted, and none of the driver's is answered. The
  // driver's may hold what MPS needs to take the process off the GPU, so the thread goes on in there.
  if (is_taken) InsideCall::end_inside_calls(wish.process);
  if (is_taken && !InsideCall::active()) InsideCall::stand_until_ended();
  errno = before;
}

bool prepare(const std::string& socket, const std::string& tenant) {
  const std::string question = abi::encode(abi::EndProcess{tenant, os::own_pid()}, 1);
  if (socket.size() >= sizeof(wish.agent.sun_path) || question.size() > wish.question.size()) return false;
  wish.agent.sun_family = AF_UNIX;
  std::memcpy(wish.agent.sun_path, socket.c_str(), socket.size() + 1);
  std::memcpy(wish.question.data(), question.data(), question.size());
  wish.question_bytes = question.size();
  wish.process = os::own_pid();
  return true;
}

}  // namespace

void end_orderly_at_sigterm() {
  const auto socket = os::environment_variable("FIREBREAK_SOCKET");
  const auto tenant = os::environment_variable("FIREBREAK_TENANT");
  struct sigaction now {};
  if (!socket || !tenant || ::sigaction(SIGTERM, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  if (!prepare(*socket, *tenant)) return;
  struct sigaction ours {};
  ours.sa_handler = on_sigterm;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  (void)::sigaction(SIGTERM, &ours, nullptr);
}

}  // namespace firebreak::guard
