// SPDX-License-Identifier: Apache-2.0
#include "watch/lookout.h"

#include "watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using namespace std::string_literals;

class LookoutTest : public DetectorTest {
 protected:
  LookoutTest() : tools_(kernel_) {
    kernel_.set_device("/dev/kmsg", feed_.device());
    LookoutOptions options;
    options.period = Milliseconds(1);
    LookoutCallbacks callbacks;
    callbacks.on_process = [this](const GpuProcess& process, const Status& followed) {
      if (followed) followed_.push_back(process.pid);
    };
    callbacks.on_server = [this](const MpsServer& server, const Status&) { servers_.push_back(server.pid); };
    WatcherOptions watcher;
    watcher.nvml_library.clear();
    WatcherCallbacks watcher_callbacks;
    watcher_callbacks.on_signal = note_fault();
    watcher_callbacks.on_exit = [this](const ProcessExit& exit) { ended_.push_back(exit.pid); };
    lookout_ =
        std::make_unique<Lookout>(*loop_, kernel_, clock_, options, callbacks, watcher, watcher_callbacks);
    EXPECT_TRUE(lookout_->watcher().start().empty());
  }

  void add(pid_t pid, const std::string& command) {
    kernel_.add_process(pid);
    const std::string folder = "/proc/" + std::to_string(pid);
    kernel_.set_file(folder + "/comm", "name\n");
    kernel_.set_file(folder + "/cmdline", command + "\0"s);
    kernel_.set_file(folder + "/environ",
                     "CUDA_MPS_PIPE_DIRECTORY=/run/a\0CUDA_MPS_LOG_DIRECTORY=/run/log\0"s);
  }
  void add_tenant(pid_t pid) {
    add(pid, "tenant");
    kernel_.give_descriptor(pid, 9, "/dev/nvidia-uvm", FakeUvmTools::va_space());
  }

  FakeUvmTools tools_;
  os::FakeRecordFeed feed_;
  std::unique_ptr<Lookout> lookout_;
  std::vector<pid_t> followed_;
  std::vector<pid_t> servers_;
  std::vector<pid_t> ended_;
};

TEST_F(LookoutTest, FollowsWhoIsThereAndWhoComesLater) {
  add_tenant(10);
  ASSERT_TRUE(lookout_->follow_everybody());
  EXPECT_EQ(followed_, std::vector<pid_t>({10}));
  EXPECT_TRUE(lookout_->watcher().hears_uvm_of(10));
  add_tenant(11);
  ASSERT_TRUE(run_until([&] { return followed_.size() == 2; }));
  EXPECT_EQ(followed_[1], 11);
  kernel_.exit_process(10, {});
  EXPECT_TRUE(run_until([&] { return ended_ == std::vector<pid_t>({10}); }));
}

TEST_F(LookoutTest, AServersXidGetsTheDomainOfItsEnvironment) {
  add(20, "nvidia-cuda-mps-server");
  ASSERT_TRUE(lookout_->follow_everybody());
  EXPECT_EQ(servers_, std::vector<pid_t>({20}));
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=20, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].domain, "/run/a");
}

TEST_F(LookoutTest, AServerThatNobodyHasSeenYetIsAskedFor) {
  add(20, "nvidia-cuda-mps-server");
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=20, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].domain, "/run/a");
}

TEST_F(LookoutTest, OneProcessBringsTheServerOfItsDomain) {
  add_tenant(10);
  add_tenant(11);
  add(20, "nvidia-cuda-mps-server");
  ASSERT_TRUE(lookout_->follow(10));
  ASSERT_TRUE(lookout_->follow(10));
  EXPECT_EQ(followed_, std::vector<pid_t>({10}));
  EXPECT_EQ(servers_, std::vector<pid_t>({20}));
  const Status absent = lookout_->follow(12);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace firebreak::watch
