// SPDX-License-Identifier: Apache-2.0
/// An agent for the supervisor's tests: does what its first argument says, word by word; after a death it
/// goes on behind the word that it died of. The second argument names a file that it writes one line to at
/// each start.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "agent/service/service_manager.h"
#include "ground/os/memory.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"

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

/// A process that is not the agent says it.
void keep_by_another(const char* program) {
  os::RealKernel kernel;
  os::SpawnRequest request;
  request.command = {program, "keep theirs, exit 0", "/dev/null"};
  const pid_t pid = kernel.spawn(request).value();
  const auto process = kernel.pidfd_open(pid).value();
  (void)os::wait_for_child(kernel, pid, process, Milliseconds(-1));
}

/// The script goes on behind the place where it died before; it does so once more each time.
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
        // This is another one each time, which counts no names, like agents of before.
        if (!agent::find_service_manager()->keep(name, os::memory_file_with(".").value().get())) return 4;
      }
    }
    if (word == "stray,") keep_by_another(arguments[0]);
    if ((word == "keep" || word == "drop") && script >> rest) {
      rest.pop_back();
      if (word == "drop") manager->drop(rest);
      if (word == "keep" && !manager->keep(rest, os::memory_file_with(rest).value().get())) return 4;
    }
  }
  return 0;
}
