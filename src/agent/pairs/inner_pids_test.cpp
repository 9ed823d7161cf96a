// SPDX-License-Identifier: Apache-2.0
#include "agent/pairs/inner_pids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ground/os/processes.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::agent {
namespace {

/// A container whose first process is 200, with a child 300 that is its number 7; beside it our own
/// process 7.
class InnerPids : public testing::Test {
 protected:
  InnerPids() {
    add(100, 1, "\t100");
    add(200, 100, "\t200\t1");
    add(300, 200, "\t300\t7");
    add(400, 300, "\t400\t8");
    add(7, 100, "\t7");
  }
  void add(pid_t pid, pid_t parent, const std::string& numbers) {
    kernel.add_process(pid);
    kernel.set_file(os::proc_folder(pid) + "/status",
                    "Name:\tx\nPPid:\t" + std::to_string(parent) + "\nNSpid:" + numbers + "\n");
  }
  /// Returns what the message says once it is translated; 0: it cannot be.
  template <class Message>
  std::int64_t translated(pid_t asker, std::int64_t named) {
    Message request;
    request.pid = named;
    abi::Message message = request;
    const Status done = translate_pids(kernel, asker, message);
    if (!done) {
      EXPECT_EQ(done.error().code, ErrorCode::NotFound);
    }
    return done ? std::get<Message>(message).pid : 0;
  }

  os::FakeKernel kernel;
};

TEST_F(InnerPids, AreOursInEachMessageThatNamesAProcess) {
  EXPECT_EQ(translated<abi::Adopt>(200, 7), 300);
  EXPECT_EQ(translated<abi::EndProcess>(200, 7), 300);
  EXPECT_EQ(translated<abi::Output>(200, 7), 300);
  EXPECT_EQ(translated<abi::Adopt>(200, 1), 200) << "it may name itself";
}

TEST_F(InnerPids, ThatAreNoChildOfWhoAsksAreRefused) {
  EXPECT_EQ(translated<abi::Adopt>(200, 8), 0) << "a child's child";
  EXPECT_EQ(translated<abi::Adopt>(200, 300), 0) << "a number that it cannot know";
  EXPECT_EQ(translated<abi::EndProcess>(200, 100), 0);
}

TEST_F(InnerPids, OfWhoIsInOurNamespaceAreTakenAtTheirWord) {
  EXPECT_EQ(translated<abi::Adopt>(100, 7), 7);
  EXPECT_EQ(translated<abi::Adopt>(100, 300), 300);
  EXPECT_EQ(translated<abi::EndProcess>(999, 7), 7) << "who is gone is not in another one";
}

TEST_F(InnerPids, AreNotLookedForInWhatNamesNoProcess) {
  abi::Message message = abi::EndTenant{"llm", 2000};
  EXPECT_TRUE(translate_pids(kernel, 200, message));
  EXPECT_EQ(std::get<abi::EndTenant>(message).tenant, "llm");
}

}  // namespace
}  // namespace firebreak::agent
