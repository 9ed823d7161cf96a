// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/domains/mps/domain.h"
#include "stage/stage.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Milliseconds patience{120'000};

/// A process and what it said.
struct Player {
  stage::Actor* actor = nullptr;
  std::vector<std::string> lines;
  pid_t pid() const { return actor->record().pid; }
  bool said(const std::string& beginning) const {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.starts_with(beginning); });
  }
};

/// What a watch said, as JSON.
std::vector<json> events_of(const Player& watch, const std::string& event) {
  std::vector<json> events;
  for (const std::string& line : watch.lines) {
    const json object = json::parse(line, nullptr, false);
    EXPECT_TRUE(object.is_object()) << line;
    if (object.is_object() && object.value("event", "") == event) events.push_back(object);
  }
  return events;
}

bool follows(const Player& watch, pid_t pid) {
  return std::ranges::any_of(events_of(watch, "process"), [pid](const json& event) {
    return event["pid"] == pid && event["followed"] == true;
  });
}

class WatchCommand : public testing::Test {
 protected:
  WatchCommand() : environment_(sandbox_.environment()) {
    environment_.emplace_back("FIREBREAK_SOFTGPU_DIR", sandbox_.file("gpu"));
    stage_ = std::move(stage::Stage::create(kernel_, clock_).value());
  }
  void TearDown() override {
    stage_.reset();
    domains_.clear();
    EXPECT_THAT(sandbox_.left_behind(), IsEmpty());
  }

  /// What a client of a new MPS domain needs.
  Sandbox::Environment new_domain(const std::string& name) {
    mps::DomainOptions options;
    options.name = name;
    options.directory = sandbox_.file(name);
    options.control_program = std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu/nvidia-cuda-mps-control";
    options.environment = environment_;
    domains_.push_back(std::move(mps::Domain::start(kernel_, options).value()));
    return domains_.back()->client_environment();
  }
  Player& start_watch(std::vector<std::string> arguments) {
    std::vector<std::string> command{std::string(FIREBREAK_PROGRAMS) + "/firebreak", "watch"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return start_program(std::move(command), {});
  }
  Player& start_lab(std::vector<std::string> arguments, const Sandbox::Environment& domain) {
    std::vector<std::string> command{std::string(FIREBREAK_PROGRAMS) + "/firebreak-lab"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return start_program(std::move(command), domain);
  }
  /// With a file for its standard error.
  Player& start_lab_with(const std::string& errors, std::vector<std::string> arguments,
                         const Sandbox::Environment& domain) {
    std::vector<std::string> command{"sh", "-c", R"(exec "$@" 2>>")" + errors + R"(")", "sh",
                                     std::string(FIREBREAK_PROGRAMS) + "/firebreak-lab"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return start_program(std::move(command), domain);
  }
  Player& start_program(std::vector<std::string> command, const Sandbox::Environment& domain) {
    auto& player = *players_.emplace_back(std::make_unique<Player>());
    stage::Casting casting{command.back(), "", std::move(command), environment_};
    casting.environment.insert(casting.environment.end(), domain.begin(), domain.end());
    player.actor =
        stage_->enter(casting, [&player](const std::string& line) { player.lines.push_back(line); }).value();
    return player;
  }
  void wait(const std::string& what, const std::function<bool()>& done) {
    const Status waited = stage_->wait(what, patience, done);
    ASSERT_TRUE(waited) << to_string(waited.error());
  }
  Player& start_tenant(const Sandbox::Environment& domain) {
    Player& tenant = start_lab({"victim", "--pace-ms", "5"}, domain);
    wait("a tenant", [&] { return tenant.said("ready"); });
    return tenant;
  }
  Player& start_rogue(const std::string& kind, const Sandbox::Environment& domain) {
    Player& rogue = start_lab({"inject", kind, "--wait"}, domain);
    wait("a rogue", [&] { return rogue.said("prepared"); });
    return rogue;
  }
  void wait_for_following(const Player& watch, const std::vector<const Player*>& players) {
    wait("the watch to follow everybody", [&] {
      return std::ranges::all_of(players,
                                 [&](const Player* player) { return follows(watch, player->pid()); });
    });
  }
  json last_incident(const Player& watch) {
    const auto incidents = events_of(watch, "incident");
    return incidents.empty() ? json() : incidents.back();
  }
  void wait_for_change(const Player& watch, const std::string& change) {
    wait("an incident that is " + change, [&] {
      const json incident = last_incident(watch);
      return incident.is_object() && incident["change"] == change;
    });
  }
  void end(Player& watch, int signal) {
    watch.actor->signal(signal);
    wait("the end of the watch", [&] { return watch.actor->ended(); });
    ASSERT_TRUE(watch.actor->record().exit);
    EXPECT_TRUE(watch.actor->record().exit->clean());
  }

  os::RealKernel kernel_;
  SystemClock clock_;
  Sandbox sandbox_;
  Sandbox::Environment environment_;
  std::vector<std::unique_ptr<mps::Domain>> domains_;
  std::vector<std::unique_ptr<Player>> players_;
  std::unique_ptr<stage::Stage> stage_;
};

const Sandbox::Environment core_dump_mode{{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"},
                                          {"CUDA_COREDUMP_SHOW_PROGRESS", "1"},
                                          {"CUDA_COREDUMP_GENERATION_FLAGS", "skip_abort"},
                                          {"CUDA_COREDUMP_FILE", "/dev/null"}};

/// Clients that were started in CUDA's core dump mode, with files for their standard error.
class WatchCoreDumps : public WatchCommand {
 protected:
  WatchCoreDumps() { environment_.insert(environment_.end(), core_dump_mode.begin(), core_dump_mode.end()); }
  const Player& start_rogue_with(const std::string& errors, const Sandbox::Environment& domain) {
    Player& rogue = start_lab_with(errors, {"inject", "misaligned-load", "--wait"}, domain);
    wait("a rogue", [&] { return rogue.said("prepared"); });
    return rogue;
  }
  json incident_of(const Player& rogue, const Player& tenant) {
    Player& watch = start_watch({"--json", "--all"});
    wait_for_following(watch, {&tenant, &rogue});
    rogue.actor->tell("go");
    wait_for_change(watch, "closed");
    end(watch, SIGTERM);
    return last_incident(watch);
  }
};

TEST_F(WatchCoreDumps, NameTheCulpritOfAnSmFault) {
  const auto domain = new_domain("a");
  const Player& tenant = start_tenant(domain);
  const Player& rogue = start_rogue_with(sandbox_.file("errors"), domain);
  const json incident = incident_of(rogue, tenant);
  EXPECT_EQ(incident["class"], "SM") << incident;
  EXPECT_EQ(incident["culprit"]["confidence"], "certain") << incident;
  EXPECT_EQ(incident["culprit"]["pid"], rogue.pid()) << incident;
  EXPECT_THAT(incident["culprit"]["evidence"].dump(), HasSubstr("the core dump of process")) << incident;
  EXPECT_THAT(incident["kind"].get<std::string>(), HasSubstr("WARP_MISALIGNED_ADDRESS, SM 0"));
}

TEST_F(WatchCoreDumps, InAFileOfSeveralNameNobody) {
  const auto domain = new_domain("a");
  const std::string errors = sandbox_.file("errors");
  Player& tenant = start_lab_with(errors, {"victim", "--pace-ms", "5"}, domain);
  wait("a tenant", [&] { return tenant.said("ready"); });
  const json incident = incident_of(start_rogue_with(errors, domain), tenant);
  EXPECT_EQ(incident["class"], "SM") << incident;
  EXPECT_EQ(incident["culprit"]["confidence"], "unknown") << incident;
  EXPECT_THAT(kernel_.read_file(errors).value(), HasSubstr("CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS"));
}

/// A program that has a core dump mode of its own keeps its lines, and the agent has no word of its dump.
TEST_F(WatchCommand, WhatATenantsOwnCoreDumpSaysIsTheTenantsAlone) {
  const std::string programs = FIREBREAK_PROGRAMS;
  const std::string socket = sandbox_.file("d/agent.sock");
  const std::vector<std::string> as_one_output = {"sh", "-c", R"(exec "$@" 2>&1)", "sh"};
  auto command = as_one_output;
  for (const std::string& word : {programs + "/firebreakd", std::string("--directory"), sandbox_.file("d")}) {
    command.push_back(word);
  }
  Player& agent = start_program(command, {});
  wait("the agent", [&] { return agent.said("firebreakd: "); });
  command = as_one_output;
  for (const std::string& word :
       {programs + "/firebreak", std::string("run"), std::string("--socket"), socket, std::string("--name"),
        std::string("rogue"), std::string("--"), programs + "/firebreak-lab", std::string("inject"),
        std::string("misaligned-load")}) {
    command.push_back(word);
  }
  const Player& rogue = start_program(command, core_dump_mode);
  const auto has = [](const Player& player, const std::string& words) {
    return std::ranges::any_of(
        player.lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
  };
  wait("the rogue's end", [&] { return rogue.actor->ended(); });
  wait("its last line", [&] { return has(rogue, "misaligned-load: CUDA_ERROR_MISALIGNED_ADDRESS"); });
  EXPECT_TRUE(has(rogue, "coredump:   - SM: 0"));
  EXPECT_THAT(rogue.lines.back(), Not(HasSubstr("coredump: ")));
  end(agent, SIGINT);
  EXPECT_FALSE(has(agent, "the core dump of process "));
}

struct SeenFault {
  const char* kind;
  const char* fault_class;
  int xid;
  const char* confidence;  ///< with which the rogue is named; "unknown": nobody is
};

class WatchKinds : public WatchCommand, public testing::WithParamInterface<SeenFault> {};

TEST_P(WatchKinds, AFaultOfAProcessThatItDidNotStart) {
  const SeenFault& expected = GetParam();
  const auto domain = new_domain("a");
  const Player& tenant = start_tenant(domain);
  const Player& rogue = start_rogue(expected.kind, domain);
  Player& watch = start_watch({"--json", "--all"});
  wait_for_following(watch, {&tenant, &rogue});
  rogue.actor->tell("go");
  wait_for_change(watch, "closed");
  const json incident = last_incident(watch);
  EXPECT_EQ(incident["id"], 1) << testing::PrintToString(watch.lines);
  EXPECT_EQ(incident["class"], expected.fault_class) << incident;
  EXPECT_THAT(incident["xids"].get<std::vector<int>>(), testing::Contains(expected.xid)) << incident;
  EXPECT_EQ(incident["culprit"]["confidence"], expected.confidence) << incident;
  if (incident["culprit"]["confidence"] != "unknown") {
    EXPECT_EQ(incident["culprit"]["pid"], rogue.pid()) << incident;
  }
  end(watch, SIGTERM);
}

INSTANTIATE_TEST_SUITE_P(Every, WatchKinds,
                         testing::Values(SeenFault{"unmapped-store-far", "MMU (replayable)", 31, "certain"},
                                         SeenFault{"copy-engine-unmap", "MMU (non-replayable)", 31,
                                                   "certain"},
                                         SeenFault{"misaligned-load", "SM", 43, "unknown"},
                                         SeenFault{"sigkill", "termination", 31, "certain"}),
                         [](const auto& each) {
                           std::string name = each.param.kind;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_F(WatchCommand, OnePidBringsItsDomainAndNobodyElse) {
  const auto domain = new_domain("a");
  const Player& tenant = start_tenant(domain);
  const Player& rogue = start_rogue("unmapped-load-far", domain);
  const Player& other = start_tenant(new_domain("b"));
  Player& watch = start_watch({"--json", "--pid", std::to_string(tenant.pid())});
  wait_for_following(watch, {&tenant, &rogue});
  rogue.actor->tell("go");
  wait_for_change(watch, "closed");
  EXPECT_EQ(last_incident(watch)["culprit"]["pid"], rogue.pid());
  EXPECT_FALSE(follows(watch, other.pid()));
  EXPECT_FALSE(other.actor->ended());
  end(watch, SIGTERM);
}

TEST_F(WatchCommand, WhoComesLaterIsFollowedToo) {
  Player& watch = start_watch({"--json", "--all"});
  wait("the watch's first words", [&] { return !watch.lines.empty(); });
  const Player& tenant = start_tenant(new_domain("a"));
  wait_for_following(watch, {&tenant});
  wait("the watch to see the server", [&] { return !events_of(watch, "server").empty(); });
  end(watch, SIGINT);
  EXPECT_THAT(events_of(watch, "incident"), IsEmpty());
}

TEST_F(WatchCommand, WhatIsOpenIsClosedAtTheEnd) {
  const auto domain = new_domain("a");
  const Player& rogue = start_rogue("unmapped-store-far", domain);
  Player& watch = start_watch({"--json", "--all"});
  wait_for_following(watch, {&rogue});
  rogue.actor->tell("go");
  wait("an incident", [&] { return last_incident(watch).is_object(); });
  end(watch, SIGTERM);
  EXPECT_EQ(last_incident(watch)["change"], "closed");
}

TEST_F(WatchCommand, PeopleGetALine) {
  const auto domain = new_domain("a");
  const Player& rogue = start_rogue("unmapped-store-far", domain);
  const std::string pid = std::to_string(rogue.pid());
  Player& watch = start_program({"sh", "-c", R"(exec "$@" 2>&1)", "sh",
                                 std::string(FIREBREAK_PROGRAMS) + "/firebreak", "watch", "--pid", pid},
                                {});
  wait("the watch to see the server and the rogue",
       [&] { return watch.said("MPS server ") && watch.said("following process " + pid + " "); });
  rogue.actor->tell("go");
  // Where the machine is busy MPS's log, which names nobody, may come first.
  const auto tells_all = [&](const std::string& line) {
    return line.find(" incident 1") != line.npos && line.find(": MMU (replayable), ") != line.npos &&
           line.find("culprit process " + pid) != line.npos;
  };
  wait("an incident with its culprit", [&] { return std::ranges::any_of(watch.lines, tells_all); });
  end(watch, SIGTERM);
  EXPECT_PRED1(tells_all, watch.lines.back());
  EXPECT_THAT(watch.lines.back(), HasSubstr(" incident 1 closed: "));
}

TEST_F(WatchCommand, WhatCannotBeHeardIsSaid) {
  const auto absent = sandbox_.run("firebreak", {"watch", "--pid", "2147483647"}, environment_);
  EXPECT_EQ(absent.status.exit_code, 1);
  EXPECT_THAT(absent.output, HasSubstr("heard: kmsg\n"));
  EXPECT_THAT(absent.output, HasSubstr("firebreak: there is no process 2147483647\n"));
  Player& watch = start_watch({"--json", "--mps-log", "/nowhere/at/all"});
  wait("its words on the log", [&] { return events_of(watch, "source").size() == 4; });
  const json log = events_of(watch, "source").back();
  EXPECT_EQ(log["heard"], false);
  EXPECT_EQ(log["remark"], "/nowhere/at/all");
  end(watch, SIGTERM);
}

}  // namespace
}  // namespace firebreak::tests
