// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <set>

#include "ground/os/real_kernel.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::agent {
namespace {

using enum ProcessState;

constexpr std::array all_states = {Starting, Running, Ending, Dying, Gone};

TEST(ProcessLife, GoesOnAndNeverBack) {
  for (const ProcessState from : all_states) {
    for (const ProcessState to : all_states) {
      EXPECT_EQ(may_become(from, to), from < to && !(from == Ending && to == Running))
          << to_string(from) << " -> " << to_string(to);
    }
  }
}

// The liveness rule: whatever happens to it, nothing of it is left in the end.
TEST(ProcessLife, EndsGoneFromEachState) {
  for (const ProcessState from : all_states) {
    std::set<ProcessState> reached = {from};
    for (bool grows = true; grows;) {
      grows = false;
      for (const ProcessState at : std::set(reached)) {
        for (const ProcessState to : all_states) {
          if (may_become(at, to)) grows |= reached.insert(to).second;
        }
      }
    }
    EXPECT_TRUE(reached.contains(Gone)) << to_string(from);
    // The last state is the one from which no way goes on.
    bool goes_on = false;
    for (const ProcessState to : all_states) goes_on |= may_become(from, to);
    EXPECT_EQ(goes_on, from != Gone) << to_string(from);
  }
}

TEST(ProcessLife, AStepThatIsNoneChangesNothing) {
  Process process(1, "llm", "a", {});
  EXPECT_TRUE(process.become(Dying));
  EXPECT_FALSE(process.become(Running));
  EXPECT_FALSE(process.become(Dying));
  EXPECT_EQ(process.state(), Dying);
}

class ProcessesTest : public testing::Test {
 protected:
  os::RealKernel kernel;
  Processes processes;
  const pid_t pid = ::getpid();
};

TEST_F(ProcessesTest, OneIsLivingUntilItDiesAndDyingUntilItIsTaken) {
  Process* process = processes.add(kernel, pid, "llm", "a").value();
  EXPECT_EQ(processes.living(pid), process);
  EXPECT_TRUE(*process->pidfd());
  EXPECT_EQ(&processes.die(pid), process);
  EXPECT_EQ(processes.living(pid), nullptr);
  EXPECT_EQ(processes.dying(pid), process);
  EXPECT_EQ(process->state(), Dying);
  EXPECT_EQ(processes.dying_count(), 1u);
  EXPECT_TRUE(processes.knows(pid));
  EXPECT_EQ(processes.take_dying(pid)->state(), Gone);
  EXPECT_FALSE(processes.knows(pid));
  EXPECT_EQ(processes.take_dying(pid), nullptr);
}

// Its number may be another's while its last kernels are waited for.
TEST_F(ProcessesTest, ANumberIsOfADeadOneAndOfALivingOneAtOnce) {
  Process& dead = processes.add_dead(pid, "llm", "a", {});
  Process* next = processes.add(kernel, pid, "other", "b").value();
  EXPECT_EQ(processes.dying(pid), &dead);
  EXPECT_EQ(processes.living(pid), next);
  EXPECT_EQ(processes.tenant_of(pid), "llm") << "its last kernels are asked after";
  EXPECT_EQ(processes.take_living(pid)->tenant(), "other");
  EXPECT_EQ(processes.dying(pid), &dead);
  EXPECT_EQ(dead.tenant(), "llm");
}

TEST_F(ProcessesTest, WhoIsNotToBeLookedAtMayBeThere) {
  os::FakeKernel fake;
  fake.set_file("/proc/7/stat", "7 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0");
  EXPECT_TRUE(may_be_there(fake, 7, "100"));
  EXPECT_FALSE(may_be_there(fake, 7, "200")) << "another one has the number";
  EXPECT_FALSE(may_be_there(fake, 8, "100"));
  fake.refuse("/proc/7/stat", Error{ErrorCode::Timeout, "it does not let itself be looked at", {}});
  EXPECT_TRUE(may_be_there(fake, 7, "100"));
  EXPECT_FALSE(may_be_there(fake, 7, "")) << "it was never known when it started";
}

TEST(ControlGroup, IsTheLongestOfThoseThatItIsIn) {
  EXPECT_EQ(control_group_in("0::/system.slice/x.service\n"), "/system.slice/x.service");
  EXPECT_EQ(control_group_in("9:name=systemd:/\n4:memory:/kubepods/pod1/c\n1:cpu,cpuacct:/kubepods\n0::/\n"),
            "/kubepods/pod1/c");
  EXPECT_EQ(control_group_in("0::/a:/b\n"), "/a:/b") << "a colon is part of it";
  const std::string long_one = "0::/" + std::string(longest_control_group_bytes, 'x') + "\n";
  for (const std::string& none :
       std::vector<std::string>{"", "x\n", "0::/a\033[2Jb\n", "0::/a b\n", long_one})
    EXPECT_EQ(control_group_in(none), "") << none;
}

TEST_F(ProcessesTest, ItsControlGroupIsKnownAfterItsEnd) {
  const std::string own = control_group_in(kernel.read_file("/proc/self/cgroup").value());
  processes.add(kernel, pid, "llm", "a").value();
  EXPECT_EQ(processes.control_group_of(pid), own);
  processes.die(pid);
  EXPECT_EQ(processes.control_group_of(pid), own);
  processes.take_dying(pid);
  EXPECT_EQ(processes.control_group_of(pid), own);
  for (pid_t other = 1; other < static_cast<pid_t>(Processes::most_remembered); ++other) {
    processes.add_dead(pid + other, "llm", "a", {});
    processes.take_dying(pid + other);
  }
  EXPECT_EQ(processes.control_group_of(pid), own);
  processes.add_dead(pid + 1, "llm", "a", {});
  processes.take_dying(pid + 1);
  EXPECT_EQ(processes.control_group_of(pid), "") << "and is not remembered for ever";
  EXPECT_NE(own, "");
}

TEST_F(ProcessesTest, OneIsItsTenantsOrWhoseProcessHasStartedItAlsoOnceItIsGone) {
  EXPECT_EQ(processes.tenant_behind(pid), "");
  ASSERT_TRUE(processes.add(kernel, pid, "llm", "a"));
  EXPECT_EQ(processes.tenant_behind(pid), "llm");
  Process& started = **processes.add(kernel, pid, "", "a");
  EXPECT_EQ(processes.tenant_behind(pid), "");
  started.stranger = Stranger{"worker", "0", "placed by one of llm's", "llm"};
  EXPECT_EQ(processes.tenant_of(pid), "") << "nothing of it is decided for the tenant";
  EXPECT_EQ(processes.tenant_behind(pid), "llm");
  processes.die(pid);
  EXPECT_EQ(processes.tenant_behind(pid), "llm");
  (void)processes.take_dying(pid);
  EXPECT_EQ(processes.tenant_behind(pid), "llm");
}

TEST_F(ProcessesTest, WhoIsNotThereIsNotFollowed) {
  os::FakeKernel without;
  EXPECT_EQ(processes.add(without, 4711, "llm", "a").error().code, ErrorCode::NotFound);
  EXPECT_FALSE(processes.knows(4711));
  EXPECT_EQ(processes.tenant_of(4711), "");
}

}  // namespace
}  // namespace firebreak::agent
