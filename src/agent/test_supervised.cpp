// SPDX-License-Identifier: Apache-2.0
/// An agent for the supervisor's tests: does what its first argument says, word by word; after a death it
/// goes on behind the word that it died of. The second argument names a file that it writes one line to at
/// each start.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "agent/service_manager.h"
#include "os/memory.h"
#include "os/real_kernel.h"
#include "os/socket.h"

namespace {

using namespace firebreak;

void say_what_was_kept(const char* file, const std::map<std::string, os::Fd>& kept) {
  std::ofstream out(file, std::ios::app);
  out << "started with " << kept.size();
  for (const auto& [name, descriptor] : kept) {
    if (kept.size() > 10) break;
    out << ": " << name << " holds " << os::content_of(descriptor.get()).value_or("nothing");
  }
  out << "\n";
}

void end_supervisor() {
  os::RealKernel kernel;
  (void)kernel.send_signal(kernel.pidfd_open(::getppid()).value(), SIGTERM);
}

/// Longer than the limits of silence that the tests have, or for as long with signs.
void stay(agent::ServiceManager& manager, bool gives_signs) {
  const SystemClock clock;
  for (const Monotonic begun = clock.now(); clock.now() - begun < Milliseconds(500);) {
    std::this_thread::sleep_for(Milliseconds(5));
    if (gives_signs) manager.give_sign();
  }
}

/// As nobody says it who checks his names first.
void say_to_manager(const std::string& state, const os::Fd& descriptor) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  const os::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  os::Socket socket(os::Fd(::dup(fd.get())));
  const int number = descriptor.get();
  if (!socket.send(std::as_bytes(std::span(state)), std::span(&number, 1), Milliseconds(-1))) std::abort();
}

void say_by_another(const std::string& state, const os::Fd& descriptor) {
  const pid_t other = ::fork();
  if (other == 0) {
    say_to_manager(state, descriptor);
    ::_exit(0);
  }
  ::waitpid(other, nullptr, 0);
}

/// Its last close() waits for ever: nobody reads what waits in it.
os::Fd lingering_socket() {
  const os::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  if (::listen(listener.get(), 1) != 0) std::abort();
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) std::abort();
  os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) std::abort();
  const linger for_ever{1, 1'000'000};
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &for_ever, sizeof(for_ever)) != 0) std::abort();
  const std::vector<char> block(1 << 16);
  while (::send(socket.get(), block.data(), block.size(), MSG_DONTWAIT) > 0) {
  }
  static std::vector<os::Fd> kept;
  kept.push_back(os::Fd(::accept(listener.get(), nullptr, nullptr)));  // and stays open with us
  return socket;
}

/// Where the script died before, behind that; once more each time.
std::string left_of(std::string script, std::ptrdiff_t deaths) {
  for (; deaths > 0; --deaths) {
    const std::size_t end = std::min({script.find("die,"), script.find("leave,"), script.find("hang,")});
    script.erase(0, script.find(',', end) + 1);
  }
  return script;
}

std::ptrdiff_t starts_before(const char* file) {
  std::ifstream in(file);
  return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const auto manager = agent::find_service_manager();
  const auto kept = manager->take_descriptors();
  const std::ptrdiff_t deaths = starts_before(arguments[2]);
  say_what_was_kept(arguments[2], kept);
  const auto any = [] { return os::memory_file_with(".").value(); };
  std::istringstream script(left_of(arguments[1], deaths));
  for (std::string word, rest; script >> word;) {
    if (word == "ready,") manager->tell_ready();
    if (word == "die,") ::raise(SIGKILL);
    if (word == "hang,") ::raise(SIGSTOP);
    if (word == "silent,") stay(*manager, false);
    if (word == "signs,") stay(*manager, true);
    if (word == "given,") manager->end_signs();
    if (word == "wanted," && manager->ends_the_silent_after()) return 5;
    if (word == "leave,") return agent::handed_over_status;
    if (word == "wait") ::pause();
    if (word == "signal") end_supervisor();
    if (word == "exit" && script >> rest) return std::atoi(rest.c_str());
    if (word == "fill" && script >> rest) {
      for (int i = std::atoi(rest.c_str()); i > 0; --i) {
        const std::string name = std::to_string(i) + std::string(200, 'n');
        // Another one each time, which counts no names: as agents of before.
        if (!agent::find_service_manager()->keep(name, os::memory_file_with(".").value().get())) return 4;
      }
    }
    if (word == "split,") say_to_manager("FDSTORE=1\nFDNAME=any:thing", any());
    if (word == "cut,") say_to_manager("FDSTORE=1\nFDNAME=!" + std::string(1, '\0'), any());
    if (word == "stray,") say_by_another("FDSTORE=1\nFDNAME=theirs", any());
    if (word == "linger,") say_to_manager("FDSTORE=1\nFDNAME=lingers", lingering_socket());
    if ((word == "keep" || word == "drop") && script >> rest) {
      rest.pop_back();
      if (word == "drop") manager->drop(rest);
      if (word == "keep" && !manager->keep(rest, os::memory_file_with(rest).value().get())) return 4;
    }
  }
  return 0;
}
