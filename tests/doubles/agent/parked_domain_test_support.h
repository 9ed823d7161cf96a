// SPDX-License-Identifier: Apache-2.0
/// Domains that can be parked: with pipes, a client and processes that are real, and a GPU that is the test.
#pragma once

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "shared/dump_mode/mode.h"
#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/park/test_dump.h"

namespace firebreak::agent {
/// Larger than a pipe that nobody reads.
inline const std::string idle_dump =
    park::test::dump_of({park::test::sms(6), {".cudbg.relfimg.dev0", 7, 0, std::string(250'000, '\0')}});
inline const std::string culprits_dump = park::test::dump_of(
    park::test::with_sms_after({park::test::sms(6), park::test::warps(2, false), park::test::lanes(6)}));

/// The end of a process's pipe that its driver would write to; what does not fit waits.
class Writer {
 public:
  Writer(const std::string& path, std::string dump) : rest_(std::move(dump)) {
    auto opened = os::RealKernel().open(path, O_WRONLY | O_NONBLOCK);
    EXPECT_TRUE(opened);
    if (opened) fd_ = std::move(*opened);
    write();
  }
  /// This tells whether all of it was taken; then it is closed.
  bool write() {
    while (!rest_.empty()) {
      const ssize_t wrote = ::write(fd_.get(), rest_.data(), rest_.size());
      if (wrote <= 0) return false;
      rest_.erase(0, static_cast<std::size_t>(wrote));
    }
    fd_.reset();
    return true;
  }
  std::size_t left_bytes() const { return rest_.size(); }

 private:
  os::Fd fd_;
  std::string rest_;
};

class ParkedDomain : public AgentTest {
 protected:
  struct Process {
    pid_t pid = 0;
    std::string pipe;
    Environment environment;  ///< The text is kept as it was told.
  };

  void SetUp() override { begin(Milliseconds(600'000)); }

  void begin(Milliseconds limit) {
    const std::string client = directory.path() + "/client";
    // It keeps what it is told: see turns_of(). That file is there, and open, before it says that it is
    // ready.
    std::ofstream(client) << "#!/bin/sh\nread begin\nexec 3>>'" << directory.path()
                          << "/turns-'$(basename $CUDA_MPS_PIPE_DIRECTORY)\necho ready\nexec cat >&3\n";
    std::filesystem::permissions(client, std::filesystem::perms::owner_all);
    agent.reset();
    AgentOptions options{path, {{"LD_LIBRARY_PATH", "/soft"}}};
    options.park = limit;
    options.first_parking_client = Milliseconds(0);
    options.parking_client = client;
    options.dump_directory = directory.path() + "/dumps";
    options.dumps_bytes_max = dumps_bytes_max;
    options.returns_within = returns_within;
    agent = start_agent(options);
    until([&] { return parking("a")["state"] == "ready" && parking("b")["state"] == "ready"; });
  }
  /// Serves what comes until that is so.
  template <class Condition>
  void until(Condition&& condition) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool is_met = condition();
    while (!is_met && std::chrono::steady_clock::now() < limit) {
      loop->run_once(Milliseconds(5));
      is_met = condition();
    }
    EXPECT_TRUE(is_met);
  }
  bool lives(const Process& process) {
    return os::is_alive(kernel.read_file(os::proc_folder(process.pid) + "/stat").value_or(""));
  }
  nlohmann::json parking(const std::string& domain) {
    const auto status = nlohmann::json::parse(agent->status_json());
    for (const auto& each : status["domains"]) {
      if (each["name"] == domain) return each["parking"];
    }
    return nullptr;
  }
  /// How often that domain's parking client was told to take a turn.
  std::uintmax_t turns_of(const std::string& domain) {
    return std::filesystem::file_size(directory.path() + "/turns-" + domain);
  }
  /// `firebreak run` does the same: it asks where, starts the program there, has it adopted.
  Process start(Peer& command, const std::string& name, bool in_mode = true) {
    return start(command, abi::Place{name, abi::Role::Active}, in_mode, -1);
  }
  /// The program has that descriptor as its standard input.
  Process start(Peer& command, const abi::Place& place, bool in_mode, int input,
                std::vector<std::pair<int, int>> inherited = {}) {
    const std::string& name = place.tenant;
    const abi::Message answer = ask(command, place);
    const auto& placed = std::get<abi::Placed>(answer);
    os::SpawnRequest request;
    request.command = {"sleep", "300"};
    request.standard_input = input;
    request.inherited = std::move(inherited);
    Process process;
    process.environment = placed.environment;
    for (const auto& variable : placed.environment) {
      if (!in_mode && park::is_of_mode(variable.first)) continue;
      request.environment.push_back(variable);
      if (variable.first == "CUDA_COREDUMP_FILE") process.pipe = variable.second;
    }
    process.pid = kernel.spawn(request).value();
    command.send(abi::Adopt{name, abi::Role::Active, process.pid});
    settle();
    EXPECT_TRUE(command.receive());
    if (is_client) be_named(process.pid);
    if (is_client && place.spare) domains.callbacks.on_clients("b", {clock.now(), {process.pid}});
    if (opens_gpu) detectors.callbacks.on_gpu_opened(process.pid);
    settle();
    return process;
  }
  /// This is about the parking client of domain a, which has not been ended since.
  std::string client_pipe() {
    std::string first;
    for (const auto& each : std::filesystem::directory_iterator(directory.path() + "/dumps/pipes")) {
      if (first.empty() || each.path().string() < first) first = each.path();
    }
    return first;
  }
  pid_t client_of(const std::string& domain) {
    for (const pid_t pid : os::children_of(kernel, os::own_pid())) {
      const std::string name = directory.path() + "/turns-" + domain;
      for (const auto& each : std::filesystem::directory_iterator(os::proc_folder(pid) + "/fd")) {
        std::error_code gone;
        if (std::filesystem::read_symlink(each, gone) == name) return pid;
      }
    }
    return 0;
  }
  /// Whoever's.
  std::string newest_pipe() {
    std::string last;
    for (const auto& each : std::filesystem::directory_iterator(directory.path() + "/dumps/pipes"))
      last = std::max(last, each.path().string());
    return last;
  }
  std::vector<std::string> told(Peer& watcher) {
    std::vector<std::string> texts;
    while (auto received = watcher.receive()) {
      const auto& event = std::get<abi::Event>(received->message);
      if (event.what == abi::EventKind::Parking) texts.push_back(event.text);
    }
    return texts;
  }
  /// This counts what went to that one so far.
  bool is_told(Peer& watcher, const std::string& words) {
    for (std::string& text : told(watcher)) told_so_far_.push_back(std::move(text));
    const auto says_it = [&](const std::string& text) { return text.find(words) != text.npos; };
    return std::ranges::any_of(told_so_far_, says_it);
  }
  /// The program stands still in its dump from then on.
  void name_culprit(const Process& culprit) {
    of_culprit.emplace(culprit.pipe, culprits_dump);
    until([&] {
      EXPECT_FALSE(of_culprit->write());
      return parking("a")["state"] == "held";
    });
  }

  /// This is about a process that is in the mode, with a pipe of that name that is there.
  Environment mode_of(const std::string& name) {
    const std::string pipe = directory.path() + "/dumps/pipes/" + name + ".pipe";
    EXPECT_TRUE(os::make_fifo(pipe));
    return park::mode_environment(pipe);
  }
  /// One of two new clients of domain a dumps: nothing of it is read, since the other has not begun.
  void expect_to_wait_for_all_to_begin() {
    Peer first = peer(), second = peer();
    const Process next = start(first, "next");
    start(second, "beside");
    Writer of_next(next.pipe, idle_dump);
    const std::size_t left_bytes = of_next.left_bytes();
    settle();
    EXPECT_FALSE(of_next.write());
    EXPECT_EQ(of_next.left_bytes(), left_bytes) << "it is read before all have begun";
  }
  /// Both dump; the parking client has dumped, too.
  void name_by_its_dump(const Process& innocent, const Process& culprit) {
    Writer of_innocent(innocent.pipe, idle_dump);
    of_culprit.emplace(culprit.pipe, culprits_dump);
    until([&] {
      (void)of_culprit->write();
      return of_innocent.write() && !detectors.exceptions.empty();
    });
  }

  std::optional<Writer> of_culprit;
  std::size_t dumps_bytes_max = std::size_t{1} << 20;  ///< The agents that begin() starts have these.
  Milliseconds returns_within = AgentOptions{}.returns_within;
  bool opens_gpu = true;  ///< whoever is started
  bool is_client = true;  ///< likewise: MPS names it, where it was told to run

 private:
  std::vector<std::string> told_so_far_;
};

}  // namespace firebreak::agent
