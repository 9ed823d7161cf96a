// SPDX-License-Identifier: Apache-2.0
/// Processes that were told to run in a domain, are no clients there, and write into the pipes of their core
/// dumps what they like, many at once and after their ends, beside a pair and a client that are honest: of
/// these nothing changes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/doubles/agent/parked_domain_test_support.h"

namespace firebreak::agent {
namespace {

constexpr unsigned seeds_max = 60;

class LyingDumps : public ParkedDomain {
 protected:
  struct Liar {
    Peer command;
    Process process;
    bool lives = true;
  };

  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // a reader may be gone
    ParkedDomain::SetUp();
    honest_.emplace(pair("honest"));
    beside_ = start(command_.emplace(peer()), "beside");
    before_ = seen();
  }

  /// All of the honest that anybody sees.
  std::string seen() {
    std::string text;
    const auto status = nlohmann::json::parse(agent->status_json());
    for (auto each : status["tenants"]) {
      if (each["name"] != "honest" && each["name"] != "beside") continue;
      each.erase("unprotected_ms");
      text += each.dump(1) + "\n";
    }
    for (const auto& each : status["domains"])
      text +=
          fmt::format("{} is {}, {}\n", each["name"].dump(), each["state"].dump(), each["parking"].dump());
    if (!detectors.exceptions.empty()) text += "somebody is blamed\n";
    if (!lives(beside_)) text += "an honest process is ended\n";
    return text + fmt::format("epoch {}", word(honest_->page).epoch);
  }

  void play(unsigned seed) {
    random_.seed(seed);
    is_client = false;
    const int many = 1 + below(6);
    for (int i = 0; i < many; ++i) {
      Peer command = peer();
      opens_gpu = coin();
      abi::Place place{fmt::format("liar-{}", i), coin() ? abi::Role::Active : abi::Role::Standby};
      place.spare = coin();
      const Process process = start(command, place, coin(), -1);
      liars_.push_back({std::move(command), process});
    }
    is_client = true;
    for (int lies = 4 + below(12); lies > 0; --lies) lie(liars_.at(static_cast<std::size_t>(below(many))));
    for (Liar& liar : liars_) end(liar);
    pump();
    writers_.clear();
    liars_.clear();
    settle();
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  bool coin() { return below(2) == 1; }

  std::string made_up() {
    std::string dump = coin() ? culprits_dump : idle_dump;
    switch (below(5)) {
      case 0:
        return std::string(static_cast<std::size_t>(1 + below(400'000)), 'x');
      case 1:
        dump.resize(static_cast<std::size_t>(1 + below(200)));
        return dump;
      case 2:  // a header, and nothing that it tells of
        std::fill(dump.begin() + 64, dump.end(), '\0');
        return dump;
      default:
        return dump;
    }
  }
  void write(const Liar& liar) {
    std::vector<std::string> pipes = {liar.process.pipe};
    for (const auto& [name, value] : liar.process.environment) {
      if (name == abi::spare_dumps_variable) pipes.push_back(value.substr(value.find(':') + 1));
    }
    for (const std::string& pipe : pipes) {
      const bool has_reader = os::RealKernel().open(pipe, O_WRONLY | O_NONBLOCK).has_value();
      if (has_reader && (pipes.size() == 1 || coin())) writers_.emplace_back(pipe, made_up());
    }
  }
  void pump() {
    for (int i = 0; i < 5; ++i) {
      for (Writer& writer : writers_) (void)writer.write();
      loop->run_once(Milliseconds(0));
    }
    settle();
  }
  void end(Liar& liar) {
    if (!std::exchange(liar.lives, false)) return;
    ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(liar.process.pid).value(), SIGKILL));
    while (!kernel.try_wait(liar.process.pid).value()) {
    }
    detectors.callbacks.on_exit(liar.process.pid);
    settle();
  }
  void lie(Liar& liar) {
    const std::array<pid_t, 3> pids = {liar.process.pid, beside_.pid, honest_->active.pid()};
    const pid_t somebody = pids.at(static_cast<std::size_t>(below(3)));
    switch (below(9)) {
      case 0:
        for (const Liar& each : liars_) {
          if (each.lives) write(each);
        }
        break;
      case 1:
      case 2:
        if (liar.lives) write(liar);
        break;
      case 3:  // its writers go on
        end(liar);
        break;
      case 4:
        clock.advance(Milliseconds(below(8'000)));
        break;
      case 5:
        liar.command.send(abi::Adopt{"liar-0", abi::Role::Active, somebody});
        break;
      case 6:
        liar.command.send(
            abi::Output{somebody, "coredump: Detected an exception of type CUDBG_EXCEPTION_X (6)"});
        break;
      case 7:
        liar.command.send(coin() ? abi::Message(abi::CoreDumpMode{}) : abi::GiveCoreDumpPipe{});
        break;
      default:
        if (liar.lives) detectors.callbacks.on_gpu_opened(liar.process.pid);
        break;
    }
    pump();
  }

 protected:
  std::optional<Peer> command_;
  std::optional<ProtectedTenant> honest_;
  Process beside_;
  std::string before_;
  std::vector<Liar> liars_;
  std::deque<Writer> writers_;
  std::mt19937 random_;
};

TEST_F(LyingDumps, ChangeNothingOfTheHonest) {
  const char* const only = std::getenv("FIREBREAK_TEST_SEED");
  const unsigned first = only == nullptr ? 1 : static_cast<unsigned>(std::strtoul(only, nullptr, 10));
  const unsigned last = only == nullptr ? seeds_max : first;
  for (unsigned seed = first; seed <= last; ++seed) {
    play(seed);
    ASSERT_EQ(seen(), before_) << "seed " << seed;
  }
}

/// Else a test that nothing changes would hold of an agent that reads no dump.
TEST_F(LyingDumps, OfWhomMpsNamesTheSameWordsChangeThem) {
  Peer command = peer();
  name_culprit(start(command, "rogue"));
  EXPECT_NE(seen(), before_);
}

}  // namespace
}  // namespace firebreak::agent
