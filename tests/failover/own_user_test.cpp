// SPDX-License-Identifier: Apache-2.0
/// The agent becomes a user of its own (--user), and a process of root's does for it what only root may.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ground/os/descriptors.h"
#include "ground/os/file.h"
#include "ground/os/looks.h"
#include "ground/os/processes.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr const char* own_user = "65531";
constexpr uid_t own_uid = 65531;
constexpr const char* tenants = "65534";
/// CAP_KILL and CAP_SYSLOG; and CAP_SYS_NICE where it cannot be done without.
constexpr std::uint64_t kept = (1ULL << 5) | (1ULL << 34);
constexpr std::uint64_t nice = 1ULL << 23;
constexpr std::uint64_t may_raise_limits = 1ULL << 24;

std::string field_of(const std::string& folder, const std::string& name) {
  std::istringstream status(os::read_small_file(folder + "/status").value_or(""));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

std::uint64_t set_of(const std::string& folder, const char* name) {
  return std::stoull(field_of(folder, name), nullptr, 16);
}

class OwnUser : public SupervisedAgent {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
    ASSERT_TRUE(os::let_through(sandbox_.file("")));
    const std::string gpu = sandbox_.file("gpu");
    ASSERT_TRUE(os::make_directories(gpu));
    ASSERT_TRUE(os::let_through(gpu));
    environment_.emplace_back("FIREBREAK_SOFTGPU_DIR", gpu);
  }
  std::vector<std::string> as_own_user(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--user", own_user, "--tenant-group", tenants};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// 0: there is none.
  pid_t child_with(pid_t agent, const std::string& argument) {
    for (const pid_t each : os::children_of(kernel_, agent)) {
      const auto command = os::read_small_file(os::proc_folder(each) + "/cmdline").value_or("");
      if (command.find(argument) != std::string::npos) return each;
    }
    return 0;
  }
  /// `firebreak COMMAND...` of a user of the tenants' group.
  Player& start_as(const std::string& user, std::vector<std::string> arguments) {
    std::vector<std::string> all = {"sh", "-c", R"(exec "$@" 2>&1)", "sh"};
    for (const std::string& word :
         {std::string("setpriv"), "--reuid=" + user, std::string("--regid=") + tenants,
          std::string("--clear-groups"), std::string("--"), program("firebreak"), arguments.front(),
          std::string("--socket"), sandbox_.file("d/tenants.sock")})
      all.push_back(word);
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    return start(std::move(all));
  }
  Player& start_neighbour_as(const std::string& user, const std::string& name) {
    Player& neighbour =
        start_as(user, {"run", "--name", name, "--", program("firebreak-lab"), "victim", "--pace-ms", "5"});
    wait("the neighbour", [&] { return neighbour.said("ready"); });
    wait_until_adopted(name);
    return neighbour;
  }
  /// Until the agent has forgotten the tenant; the test's own time limit bounds it.
  void wait_for_status_of_none(const std::string& name) {
    while (!status_of(name).is_null()) {
      while (stage_->loop().run_once(Milliseconds(0))) {
      }
    }
  }
  void expect_taken_over(Player& active, Player& standby) {
    send(pid_of(tenant), SIGKILL);
    wait_for_end(active);
    wait_for_end(standby);
    EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
    expect_output_as_if_nothing_happened();
  }
  nlohmann::json domains() {
    return nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false)["domains"];
  }
  void expect_of_own_user(pid_t pid) {
    const std::string folder = os::proc_folder(pid);
    const std::uint64_t all = set_of("/proc/self", "CapBnd");
    const bool needs_nice = (all & may_raise_limits) == 0;
    const std::uint64_t wanted = kept | (needs_nice ? nice : 0);
    const std::vector<std::string> threads = kernel_.list_directory(folder + "/task").value();
    for (const std::string& thread : threads) {
      const std::string its = folder + "/task/" + thread;
      EXPECT_EQ(field_of(its, "Uid"), "65531\t65531\t65531\t65531");
      EXPECT_EQ(field_of(its, "Gid"), "65531\t65531\t65531\t65531");
      EXPECT_EQ(field_of(its, "Groups"), "65534 ");
      EXPECT_EQ(set_of(its, "CapPrm"), wanted & all);
      EXPECT_EQ(set_of(its, "CapEff"), wanted & all);
      EXPECT_EQ(set_of(its, "CapInh"), 0U);
      EXPECT_EQ(set_of(its, "CapAmb"), 0U);
      EXPECT_EQ(field_of(its, "NoNewPrivs"), "1");
    }
  }
};

TEST_F(OwnUser, EachOfItsThreadsHasFewRights) {
  start_supervised(as_own_user());
  start_active();
  wait_for_steps(1);
  const pid_t agent = agent_pid();
  expect_of_own_user(agent);
  EXPECT_EQ(field_of(os::proc_folder(shelf_pid()), "Uid"), "65531\t65531\t65531\t65531");
  EXPECT_EQ(set_of(os::proc_folder(shelf_pid()), "CapPrm"), 0U);
  const pid_t helper = child_with(agent, "--privileged-helper");
  ASSERT_NE(helper, 0);
  EXPECT_EQ(field_of(os::proc_folder(helper), "Uid"), "0\t0\t0\t0");
  EXPECT_NE(child_with(agent, "--rights-keeper"), 0);
}

TEST_F(OwnUser, TenantsOfSeveralUsersComputeAndOneIsTakenOver) {
  start_supervised(as_own_user());
  Player& one = start_neighbour_as("65533", "one");
  Player& other = start_neighbour_as(tenants, "other");
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  Player& stop = start_as("65533", {"stop", "other"});
  wait_for_end(stop);
  EXPECT_TRUE(stop.said("tenant 'other' is another user's"));
  expect_taken_over(active, standby);
  expect_unharmed(one);
  expect_unharmed(other);
}

TEST_F(OwnUser, WhatOneUserSharesAnotherDoesNotGet) {
  start_supervised(as_own_user());
  const auto sharer = [this](const std::string& user, const std::string& name,
                             const std::vector<std::string>& words) -> Player& {
    std::vector<std::string> all = {"run", "--name", name, "--", FIREBREAK_TEST_SHARER};
    all.insert(all.end(), words.begin(), words.end());
    return start_as(user, all);
  };
  Player& maker =
      sharer("65533", "maker", {"make", "backbone", "1", "write", "42", "share", "wait", "leave"});
  wait("the maker", [&] { return maker.said("waits"); });
  EXPECT_TRUE(maker.said("share FB_OK")) << testing::PrintToString(maker.lines);
  Player& friendly = sharer("65533", "friend", {"map", "maker", "backbone", "-1", "read", "leave"});
  wait_for_end(friendly);
  EXPECT_TRUE(friendly.said("read 0 42")) << testing::PrintToString(friendly.lines);
  Player& stranger =
      sharer(tenants, "stranger",
             {"map", "maker", "backbone", "10", "wait", "map", "maker", "backbone", "10", "leave"});
  wait("the stranger", [&] { return stranger.said("waits"); });
  EXPECT_TRUE(stranger.said("map FB_ERROR_REFUSED 0: tenant 'maker' is another user's"))
      << testing::PrintToString(stranger.lines);
  maker.actor->tell("go");
  wait_for_end(maker);
  wait_for_status_of_none("maker");
  stranger.actor->tell("go");
  wait_for_end(stranger);
  EXPECT_TRUE(stranger.said("map FB_ERROR_TIMEOUT 0: no tenant 'maker' shares its memory"))
      << testing::PrintToString(stranger.lines);
}

TEST_F(OwnUser, AFaultInADomainIsSurvivedAndTheDomainServesAgain) {
  start_supervised(as_own_user());
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  Player& culprit = start_tenant("rogue", {program("firebreak-lab"), "inject", "--wait", "misaligned-load"});
  wait("the rogue", [&] { return culprit.said("prepared"); });
  EXPECT_EQ(status_of("rogue")["active"]["domain"], status_of(tenant)["active"]["domain"]);
  culprit.actor->tell("go");
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
  expect_unharmed(start_neighbour());
}

TEST_F(OwnUser, TheNextAgentIsOfThatUserAndGoesOn) {
  start_supervised(as_own_user());
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const nlohmann::json before = domains();
  tell_agent_to_end();
  wait_for_next_agent();
  expect_of_own_user(agent_pid());
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(domains()[i]["daemon_pid"], before[i]["daemon_pid"]);
  EXPECT_EQ(status_of(tenant)["standby_state"], "ready");
  expect_taken_over(active, standby);
}

TEST_F(OwnUser, OneThatHangsIsReplaced) {
  start_supervised(as_own_user({"--watchdog-s", "10"}));
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  hang_agent();
  wait_for_next_agent();
  expect_of_own_user(agent_pid());
  expect_taken_over(active, standby);
}

TEST_F(OwnUser, OneWhoseHelperIsKilledIsReplaced) {
  start_supervised(as_own_user());
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t helper = child_with(agent_pid(), "--privileged-helper");
  ASSERT_NE(helper, 0);
  kill_keeper(helper);
  wait_for_next_agent();
  EXPECT_TRUE(agent_->said("the process that is root's has ended"));
  EXPECT_NE(child_with(agent_pid(), "--privileged-helper"), 0);
  expect_taken_over(active, standby);
}

/// Of a machine on which the agent was root's until now.
TEST_F(OwnUser, TakesUpWhatAnAgentOfRootsHasLeft) {
  start_agent({"--tenant-group", tenants, "--park-s", "60"});
  expect_unharmed(start_neighbour());
  const pid_t daemon = domains()[0]["daemon_pid"];
  agent_->actor->signal(SIGKILL);
  wait_for_end(*agent_);
  ASSERT_TRUE(os::make_fifo(sandbox_.file("d/core-dumps/left.pipe")));
  ASSERT_EQ(::link(sandbox_.file("d/core-dumps/left.pipe").c_str(), sandbox_.file("another").c_str()), 0);
  ASSERT_TRUE(os::make_file(sandbox_.file("d/core-dumps/left.json")));
  start_agent(as_own_user({"--park-s", "60"}));
  wait("it serves", [&] { return agent_->said("listening at") || agent_->actor->ended(); });
  EXPECT_EQ(domains()[0]["daemon_pid"], daemon);
  expect_of_own_user(agent_->actor->record().pid);
  struct stat info {};
  ASSERT_EQ(::stat(sandbox_.file("d/core-dumps").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, own_uid);
  ASSERT_EQ(::stat(sandbox_.file("d/core-dumps/left.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, own_uid);
  ASSERT_EQ(::stat(sandbox_.file("d/core-dumps/left.pipe").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U) << "somebody may have put it there under another name";
  expect_unharmed(start_neighbour("later"));
}

/// An agent of that user's that was taken over could have left them so.
TEST_F(OwnUser, NamesThatWereLeftKeepNobodyFromStarting) {
  const auto theirs = [this](const std::string& name) {
    EXPECT_EQ(::lchown(sandbox_.file(name).c_str(), own_uid, own_uid), 0) << name;
  };
  ASSERT_TRUE(os::make_directories(sandbox_.file("d/agent.lock/in/it")));
  ASSERT_EQ(::symlink(sandbox_.file("gpu").c_str(), sandbox_.file("d/core-dumps").c_str()), 0);
  ASSERT_TRUE(os::make_file(sandbox_.file("d/tenants.sock")));
  ASSERT_TRUE(os::make_directories(sandbox_.file("d/status.sock")));
  for (const char* name : {"d/agent.lock", "d/core-dumps", "d/tenants.sock", "d/status.sock"}) theirs(name);
  start_agent(as_own_user());
  wait("it serves", [&] { return agent_->said("listening at") || agent_->actor->ended(); });
  EXPECT_FALSE(agent_->actor->ended()) << testing::PrintToString(agent_->lines);
  EXPECT_FALSE(std::filesystem::is_symlink(sandbox_.file("d/core-dumps")));
  expect_unharmed(start_neighbour_as("65533", "one"));
}

/// A child of one that was taken over could hold it for ever.
TEST_F(OwnUser, HasNoLockThatItsChildrenCouldKeep) {
  start_supervised(as_own_user());
  struct stat info {};
  ASSERT_EQ(::stat(sandbox_.file("d/agent.lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 0U);
  EXPECT_EQ(info.st_mode & 0077U, 0U);
  const pid_t agent = agent_pid();
  const auto has_it = [&](pid_t pid) {
    bool has = false;
    EXPECT_TRUE(os::visit_descriptors(kernel_, pid, [&](int, const std::string& target) {
      has |= target == sandbox_.file("d/agent.lock");
      return true;
    }));
    return has;
  };
  EXPECT_FALSE(has_it(agent));
  EXPECT_TRUE(has_it(child_with(agent, "--privileged-helper")));
}

TEST_F(OwnUser, HasNoTerminal) {
  start_agent(as_own_user(), {"python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])"});
  wait("it serves", [&] { return agent_->said("listening at") || agent_->actor->ended(); });
  const auto agents = os::children_of(kernel_, agent_->actor->record().pid);
  ASSERT_EQ(agents.size(), 1U);
  const std::string folder = os::proc_folder(agents.front());
  constexpr int its_terminal = 7;
  EXPECT_EQ(os::stat_field(os::read_small_file(folder + "/stat").value(), its_terminal), "0");
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/fd/0"), "/dev/null");
  ::kill(agents.front(), SIGINT);
  wait_for_end(*agent_);
  agent_ = nullptr;
}

/// Links in it would lead root elsewhere.
TEST_F(OwnUser, LeavesADirectoryThatNoAgentOfRootsTakes) {
  start_agent(as_own_user());
  wait("it serves", [&] { return agent_->said("listening at") || agent_->actor->ended(); });
  agent_->actor->signal(SIGKILL);
  wait_for_end(*agent_);
  start_agent({"--tenant-group", tenants});
  wait_for_end(*agent_);
  EXPECT_EQ(agent_->exit_status(), 1);
  EXPECT_TRUE(agent_->said("others may write in")) << testing::PrintToString(agent_->lines);
  start_agent(as_own_user());
  wait("it serves", [&] { return agent_->said("listening at") || agent_->actor->ended(); });
  EXPECT_FALSE(agent_->actor->ended());
}

TEST_F(OwnUser, MayNotTouchWhatIsRoots) {
  start_supervised(as_own_user());
  struct stat info {};
  const auto is_roots = [&](const std::string& name) {
    return ::lstat(sandbox_.file(name).c_str(), &info) == 0 && info.st_uid == 0;
  };
  EXPECT_TRUE(is_roots("d"));
  EXPECT_EQ(info.st_mode & 07777U, 01771U);
  for (const char* name : {"d/a", "d/a/pipe", "d/a/log"}) {
    EXPECT_TRUE(is_roots(name)) << name;
    EXPECT_EQ(info.st_mode & 0022U, 0U) << name;
  }
  const auto as_it = [&](const std::string& script) {
    os::SpawnRequest request;
    request.command = {"setpriv",
                       std::string("--reuid=") + own_user,
                       std::string("--regid=") + own_user,
                       "--groups",
                       tenants,
                       "--",
                       "sh",
                       "-c",
                       script};
    return os::run_program(kernel_, request, "", Milliseconds(30'000))->status.clean();
  };
  const std::string d = sandbox_.file("d");
  EXPECT_TRUE(as_it("ls " + d + "/a/log && cat " + d + "/a/log/server.log"));
  EXPECT_TRUE(as_it("touch " + d + "/own && rm " + d + "/own"));
  EXPECT_FALSE(as_it("mv " + d + "/a " + d + "/c"));
  EXPECT_FALSE(as_it("touch " + d + "/a/log/new"));
  EXPECT_FALSE(as_it("touch " + d + "/a/pipe/new"));
  EXPECT_FALSE(as_it("echo x >> " + d + "/a/log/server.log"));
  std::ofstream(sandbox_.file("secret")) << "root's";
  std::filesystem::permissions(sandbox_.file("secret"), std::filesystem::perms::owner_read);
  EXPECT_FALSE(as_it("cat " + sandbox_.file("secret")));
}

/// Nobody would notice that tenants end.
TEST_F(OwnUser, DoesNotStartWhereProcHidesOthers) {
  if (!may_unshare({"--mount"})) GTEST_SKIP() << "nobody may mount here";
  start_agent(as_own_user(), {"unshare", "--mount", "sh", "-c",
                              R"(mount -t proc -o hidepid=invisible proc /proc && exec "$@")", "sh"});
  wait_for_end(*agent_);
  EXPECT_EQ(agent_->exit_status(), 1);
  EXPECT_TRUE(agent_->said("(hidepid)")) << testing::PrintToString(agent_->lines);
  agent_ = nullptr;
}

TEST_F(OwnUser, IsNotRootsOwnGroupNorTheTenants) {
  const auto refused = [&](std::vector<std::string> arguments) {
    start_agent(std::move(arguments));
    wait_for_end(*agent_);
    const bool is_refused = agent_->exit_status() == 1;
    agent_ = nullptr;
    return is_refused;
  };
  EXPECT_TRUE(refused({"--user", "root"}));
  EXPECT_TRUE(refused({"--user", "nobody of that name"}));
  EXPECT_TRUE(refused({"--user", own_user, "--tenant-group", own_user}));
  EXPECT_TRUE(refused({"--user", own_user, "--operator-group", "0"}));
}

}  // namespace
}  // namespace firebreak::tests
