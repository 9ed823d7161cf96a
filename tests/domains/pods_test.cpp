// SPDX-License-Identifier: Apache-2.0
// Tenants as in a pod: PID, mount, network, IPC and UTS namespaces of their own, an ordinary user, and of
// ours nothing but a socket, a domain's directory, the guard's library and their environment. With
// FIREBREAK_POD_ROOT in another root file system, too (HACKING.md).
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "ground/os/processes.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What a container runtime does. `$1`: the test's folder; what follows is the program. /tmp is another one
/// there, so that nothing is found by the paths that it has outside, but for the domains' directories and the
/// GPU: those are where they are outside, as `firebreak cdi` and the driver have them. `$2`: the build, which
/// another root gets at the same place.
constexpr const char* enter = R"(set -e
folder=$1; build=$2; shift 2
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/firebreak/pipe /run/firebreak/gpu
touch /run/firebreak/tenants.sock
mount --bind "$folder/d/a/pipe" /run/firebreak/pipe
mount --bind "$folder/gpu" /run/firebreak/gpu
mount --bind "$folder/d/tenants.sock" /run/firebreak/tenants.sock
for domain in a b; do
  mkdir -p "/run/firebreak/$domain"
  mount --bind "$folder/d/$domain/pipe" "/run/firebreak/$domain"
done
mkdir -p /run/firebreak/build
mount --rbind "$build" /run/firebreak/build
mount -t tmpfs -o mode=1777 none /tmp
if [ ! -d "$build" ]; then # it lies in /tmp
  mkdir -p "$build"
  mount --rbind /run/firebreak/build "$build"
fi
for domain in a b; do
  mkdir -p "$folder/d/$domain/pipe"
  mount --bind "/run/firebreak/$domain" "$folder/d/$domain/pipe"
done
mkdir -p "$folder/gpu"
mount --bind /run/firebreak/gpu "$folder/gpu"
chmod 755 "$folder" "$folder/d"
cd /
root=$FIREBREAK_POD_ROOT
if [ -n "$root" ]; then
  mkdir -p "$root$build"
  for each in /proc /dev /run /tmp "$build"; do mount --rbind "$each" "$root$each"; done
fi
exec ${root:+chroot "$root"} setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@")";

const std::vector<std::string> namespaces = {"--pid",   "--fork", "--kill-child", "--mount-proc",
                                             "--mount", "--net",  "--ipc",        "--uts"};

class Pods : public AgentOnStage {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root makes such namespaces here";
    if (!may_unshare(namespaces)) GTEST_SKIP() << "nobody makes such namespaces here";
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
    ASSERT_TRUE(os::let_through(sandbox_.file("")));
    const std::string gpu = sandbox_.file("gpu");
    ASSERT_TRUE(os::make_directories(gpu));
    ASSERT_TRUE(os::let_through(gpu));
    environment_ = {{"FIREBREAK_SOFTGPU_DIR", gpu}, {"FIREBREAK_LOG", "info"}};
  }
  void start_agent_for_users(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--tenant-group", "65534"});
    start_agent(std::move(more));
  }
  /// `environment`: besides what is the same in all pods.
  Player& start_pod(const std::vector<std::string>& program, const std::vector<std::string>& environment) {
    std::vector<std::string> all = {"unshare"};
    all.insert(all.end(), namespaces.begin(), namespaces.end());
    all.insert(all.end(), {"sh", "-c", enter, "sh", sandbox_.file(""), FIREBREAK_PROGRAMS "/..", "env",
                           "FIREBREAK_SOFTGPU_DIR=/run/firebreak/gpu"});
    all.insert(all.end(), environment.begin(), environment.end());
    all.insert(all.end(), program.begin(), program.end());
    return start(std::move(all));
  }
  /// Nobody but its environment says that it is a tenant.
  Player& start_spinner_in_pod(const std::string& argument = {}) {
    std::vector<std::string> command = {program("guard_test_spinner")};
    if (!argument.empty()) command.push_back(argument);
    return start_pod(command,
                     {"CUDA_MPS_PIPE_DIRECTORY=/run/firebreak/pipe",
                      "FIREBREAK_SOCKET=/run/firebreak/tenants.sock", "LD_PRELOAD=" FIREBREAK_GUARD_LIBRARY});
  }
  nlohmann::json status() {
    return nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
  }
  /// The agent has what it needs to hold its work.
  bool is_held(pid_t pid) {
    const nlohmann::json now = status();
    return std::ranges::any_of(now["holds"], [&](const auto& hold) { return hold["pid"] == pid; });
  }
  /// Once the agent sees it, and its guard. By the number that it has outside.
  pid_t wait_for_stranger() {
    pid_t pid = 0;
    ask_until("whom MPS names", [&] {
      const nlohmann::json now = status();
      for (const auto& each : now["domains"][0]["foreign"]) pid = each["pid"];
      return pid != 0;
    });
    const std::string guarded = " pid=" + std::to_string(pid) + " source= epoch=0 step=0 on, ";
    wait("its guard", [&] { return agent_->said(guarded); });
    return pid;
  }
};

TEST_F(Pods, AStrayOfATenantByEnvironmentAloneIsContainedToldAndItsEnd) {
  start_agent_for_users();
  Player& neighbour = start_neighbour();
  Player& pod = start_spinner_in_pod("--stray");
  const pid_t pid = wait_for_stranger();
  EXPECT_TRUE(os::is_in_inner_namespace(kernel_, pid));
  EXPECT_EQ(status()["domains"][0]["foreign"][0]["uid"], "65534");
  wait("the program", [&] { return pod.said("spinning"); });
  pod.actor->tell("go");
  wait_for_end(pod);
  wait("the agent's word", [&] {
    return agent_->said("contained stray of guard_test_spin of user 65534, process " + std::to_string(pid));
  });
  EXPECT_TRUE(agent_->said(" by kernel `stray`")) << testing::PrintToString(agent_->lines);
  expect_unharmed(neighbour);
  const std::string incidents = command({"incidents"}).output;
  EXPECT_THAT(incidents, HasSubstr("process " + std::to_string(pid)));
  EXPECT_THAT(incidents, Not(HasSubstr("lost")));
}

TEST_F(Pods, ADeathInMidKernelOfATenantByEnvironmentAloneHarmsNobody) {
  start_agent_for_users({"--hold-s", "1"});
  Player& neighbour = start_neighbour();
  const Player& pod = start_spinner_in_pod();
  const pid_t pid = wait_for_stranger();
  wait("the program", [&] { return pod.said("spinning"); });
  while (!is_held(pid)) {
  }
  Player& newcomer = start_neighbour("newcomer");  // beside its kernel
  send(pid, SIGKILL);
  wait_for_end(pod);
  wait("the agent's word of its end", [&] { return agent_->said("exited tenant= domain=a pid="); });
  // Linux closes the descriptors of a namespace's first process before that has ended: then they are held as
  // given back, and no release is told.
  while (is_held(pid)) {
  }
  EXPECT_FALSE(agent_->said("fault tenant"));
  expect_unharmed(neighbour);
  expect_unharmed(newcomer);
}

TEST_F(Pods, RunStartsATenantThatIsKnownByItsNumberOutside) {
  start_agent_for_users();
  Player& neighbour = start_neighbour();
  Player& pod = start_pod({program("firebreak"), "run", "--name", "llm", "--", "sleep", "300"},
                          {"FIREBREAK_SOCKET=/run/firebreak/tenants.sock"});
  wait_until_adopted("llm");
  const pid_t pid = pid_of("llm");
  EXPECT_TRUE(os::is_in_inner_namespace(kernel_, pid));
  EXPECT_EQ(kernel_.read_file(os::proc_folder(pid) + "/comm").value_or(""), "sleep\n");
  send(pid, SIGKILL);
  wait_for_end(pod);
  // unshare(1) cannot end by SIGKILL as its program did, and fails.
  EXPECT_NE(pod.exit_status(), 0) << testing::PrintToString(pod.lines);
  expect_unharmed(neighbour);
}

TEST_F(Pods, RunKeepsAPairWhoseActiveIsKilled) {
  start_agent_for_users();
  Player& pod =
      start_pod({program("firebreak"), "run", "--pair", "--name", "llm", "--", program("firebreak-decode"),
                 "--steps", "100000", "--output", "/tmp/tokens", "--pace-ms", "20"},
                {"FIREBREAK_SOCKET=/run/firebreak/tenants.sock"});
  const auto is_protected = [](std::uint32_t epoch) {
    return [epoch](const nlohmann::json& now) {
      return now["epoch"] == epoch && now["standby_state"] == "ready" && now["committed_steps"] > 1;
    };
  };
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    wait_for_status("llm", is_protected(epoch));
    const pid_t pid = pid_of("llm");
    EXPECT_TRUE(os::is_in_inner_namespace(kernel_, pid));
    send(pid, SIGKILL);
  }
  wait_for_status("llm", is_protected(3));
  EXPECT_EQ(command({"stop", "llm"}).status.exit_code, 0);
  wait_for_end(pod);
}

}  // namespace
}  // namespace firebreak::tests
