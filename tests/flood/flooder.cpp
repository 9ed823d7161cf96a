// SPDX-License-Identifier: Apache-2.0
/// What one user's processes do to the agent, as much as they can, until their standard input ends:
///   messages     of every kind, on many connections, without reading what they are answered
///   connections  as many as there is room for, closed and made again
///   descriptors  called like a GPU's and plain ones: sent along, and in processes that the agent looks at
///   faults       in MPS domains of their own
/// Says "begun" first, and at the end in one line of JSON what it did. With --burn it only computes, so much
/// as a flood did; with --open it is one of those processes.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/descriptors.h"
#include "ground/os/memory.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/socket.h"
#include "shared/abi/wire.h"

namespace firebreak::flood {
namespace {

struct Options {
  std::string socket;
  std::string programs;
  std::string gpu;
  std::string victim;
  double burn_cores = 0;
  int open = 0;
};

struct Done {
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> turned_away{0};
  std::atomic<std::uint64_t> descriptors_sent{0};
  std::atomic<std::uint64_t> processes_with_descriptors{0};
  std::atomic<std::uint64_t> faults{0};
};

constexpr std::size_t connections_with_messages = 200;
constexpr std::size_t most_connections = 1'100;  ///< more than a user may have
constexpr Milliseconds patience{20'000};
constexpr Milliseconds pause{5};

double cpu_s_of(int whom) {
  rusage usage{};
  if (::getrusage(whom, &usage) != 0) return 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// One thread each; all end soon after `is_over`.
class Flooder {
 public:
  explicit Flooder(const Options& options) : options_(options) {}

  void run() {
    std::vector<std::jthread> parts;
    for (const auto part : {&Flooder::send_messages, &Flooder::come_and_go, &Flooder::send_descriptors,
                            &Flooder::start_who_has_many, &Flooder::raise_faults})
      parts.emplace_back([this, part] { (this->*part)(); });
    std::string line;
    while (std::getline(std::cin, line)) {
    }
    is_over_ = true;
  }
  const Done& done() const { return done_; }

 private:
  std::vector<std::string> letters() const;
  void send_messages();
  void come_and_go();
  void send_descriptors();
  void start_who_has_many();
  void raise_faults();
  std::optional<os::Socket> come();
  void run_tenant(const std::string& name, const std::vector<std::string>& command);

  const Options& options_;
  std::atomic<bool> is_over_{false};
  Done done_;
};

std::optional<os::Socket> Flooder::come() {
  auto socket = os::connect(options_.socket, Milliseconds(0));
  if (!socket) {
    ++done_.turned_away;
    return std::nullopt;
  }
  ++done_.connections;
  return std::move(*socket);
}

/// An attacker may try these, and messages that are none at all.
std::vector<std::string> Flooder::letters() const {
  const std::string& victim = options_.victim;
  abi::Place place{victim};
  abi::Place own{"flood-own"};
  own.gpu = options_.gpu;
  return {abi::encode(abi::StatusRequest{}, 1),
          abi::encode(place, 2),
          abi::encode(abi::EndTenant{victim, 0}, 3),
          abi::encode(abi::HandOver{victim}, 4),
          abi::encode(abi::Inject{victim, "misaligned-load"}, 5),
          abi::encode(abi::Join{victim, abi::Role::Standby, "no token"}, 6),
          abi::encode(abi::Rejoin{victim, "no token", true}, 7),
          abi::encode(abi::Output{1, "CUDA error: an illegal memory access was encountered"}, 8),
          abi::encode(own, 9),
          abi::encode(abi::Subscribe{}, 10),
          abi::encode(abi::Shutdown{true}, 11),
          "{\"type\": \"no such thing\"}"};
}

void Flooder::send_messages() {
  const std::vector<std::string> all = letters();
  std::vector<std::optional<os::Socket>> connections(connections_with_messages);
  for (std::size_t round = 0; !is_over_; ++round) {
    bool is_any_taken = false;
    for (std::size_t i = 0; i < connections.size() && !is_over_; ++i) {
      auto& connection = connections[i];
      if (!connection) connection = come();
      if (!connection) continue;
      const std::string& letter = all[(round + i) % all.size()];
      const auto sent = connection->send(std::as_bytes(std::span(letter)), {}, Milliseconds(0));
      if (sent) ++done_.messages;
      is_any_taken |= sent.has_value();
      // Every second one lets its answers lie.
      bool is_gone = !sent && sent.error().code == ErrorCode::Unavailable;
      while (i % 2 == 0 && !is_gone) {
        const auto answer = connection->receive(Milliseconds(0));
        if (answer) continue;
        is_gone = answer.error().code != ErrorCode::Timeout;
        break;
      }
      if (is_gone) connection.reset();
    }
    if (!is_any_taken) std::this_thread::sleep_for(Milliseconds(1));
  }
}

void Flooder::come_and_go() {
  const std::string question = abi::encode(abi::StatusRequest{}, 1);
  while (!is_over_) {
    std::vector<os::Socket> all;
    while (!is_over_ && all.size() < most_connections) {
      auto connection = come();
      if (!connection) break;
      (void)connection->send(std::as_bytes(std::span(question)), {}, Milliseconds(0));
      all.push_back(std::move(*connection));
    }
    std::this_thread::sleep_for(pause);
  }
}

void Flooder::send_descriptors() {
  const auto space = os::create_memory_file("nvidia-uvm", 4096);
  const os::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!space || !null) return;
  std::array<int, os::most_descriptors_in_a_message> descriptors{};
  for (std::size_t i = 0; i < descriptors.size(); ++i)
    descriptors[i] = i % 2 == 0 ? space->get() : null.get();
  const std::string letter = abi::encode(abi::Publish{"weights", 0x7000'0000'0000, 4096}, 1);
  std::optional<os::Socket> connection;
  while (!is_over_) {
    if (!connection) connection = come();
    const bool is_sent =
        connection && connection->send(std::as_bytes(std::span(letter)), descriptors, Milliseconds(1));
    if (is_sent) done_.descriptors_sent += descriptors.size();
    while (connection && connection->receive(Milliseconds(0))) {
    }
    if (!is_sent) {
      connection.reset();
      std::this_thread::sleep_for(pause);
    }
  }
}

void Flooder::run_tenant(const std::string& name, const std::vector<std::string>& command) {
  os::RealKernel kernel;
  os::SpawnRequest request;
  request.command = {options_.programs + "/firebreak",
                     "run",
                     "--socket",
                     options_.socket,
                     "--name",
                     name,
                     "--gpu",
                     options_.gpu,
                     "--"};
  request.command.insert(request.command.end(), command.begin(), command.end());
  (void)os::run_program(kernel, request, "", patience);
  std::this_thread::sleep_for(pause);
}

void Flooder::start_who_has_many() {
  while (!is_over_) {
    run_tenant("flood-many", {options_.programs + "/firebreak_flooder", "--open", "20000"});
    ++done_.processes_with_descriptors;
  }
}

void Flooder::raise_faults() {
  while (!is_over_) {
    run_tenant("flood-fault", {options_.programs + "/firebreak-lab", "inject", "misaligned-load"});
    ++done_.faults;
  }
}

/// The first half of them are called as the software GPU's address spaces are.
int open_many(int count) {
  const auto space = os::create_memory_file("nvidia-uvm", 4096);
  const os::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!space || !null) return 1;
  for (int i = 0; i < count; ++i) {
    if (::fcntl(i < count / 2 ? space->get() : null.get(), F_DUPFD_CLOEXEC, 3) < 0) break;
  }
  std::this_thread::sleep_for(Milliseconds(500));
  return 0;
}

/// So many cores, by a thread for each that is begun.
void burn(double cores) {
  std::atomic<bool> is_over{false};
  std::vector<std::jthread> threads;
  const SystemClock clock;
  const auto count = static_cast<int>(std::ceil(cores));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&is_over, &clock, share = cores / count] {
      const Monotonic begin = clock.now();
      double used_s = 0;
      while (!is_over) {
        const double passed_s = std::chrono::duration<double>(clock.now() - begin).count();
        if (used_s >= share * passed_s) std::this_thread::sleep_for(Milliseconds(1));
        used_s = cpu_s_of(RUSAGE_THREAD);
      }
    });
  }
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  is_over = true;
}

std::string report(const Done& done) {
  const nlohmann::ordered_json all = {
      {"messages", done.messages.load()},
      {"connections", done.connections.load()},
      {"connections_turned_away", done.turned_away.load()},
      {"descriptors_sent", done.descriptors_sent.load()},
      {"processes_with_20000_descriptors", done.processes_with_descriptors.load()},
      {"faults", done.faults.load()},
      {"cpu_s", cpu_s_of(RUSAGE_SELF) + cpu_s_of(RUSAGE_CHILDREN)}};
  return all.dump();
}

}  // namespace
}  // namespace firebreak::flood

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  flood::Options options;
  CLI::App app{"Floods the agent, until its standard input ends."};
  app.add_option("--socket", options.socket, "Where tenants reach the agent");
  app.add_option("--programs", options.programs, "Where Firebreak's programs are");
  app.add_option("--gpu", options.gpu, "Whose domains it has faults in");
  app.add_option("--victim", options.victim, "Another user's tenant");
  app.add_option("--burn", options.burn_cores, "Only computes, on so many cores");
  app.add_option("--open", options.open, "Only opens so many descriptors, and ends soon");
  CLI11_PARSE(app, argument_count, arguments);
  (void)os::raise_descriptor_limit();
  if (options.open > 0) return flood::open_many(options.open);
  fmt::print("begun\n");
  std::fflush(stdout);
  flood::Flooder flooder(options);
  if (options.burn_cores > 0) {
    flood::burn(options.burn_cores);
  } else {
    flooder.run();
  }
  fmt::print("{}\n", flood::report(flooder.done()));
  return 0;
}
