// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/process_finder.h"

#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using namespace std::string_literals;

class ProcessFinderTest : public DetectorTest {
 protected:
  explicit ProcessFinderTest(Nanoseconds period = Milliseconds(1)) : tools_(kernel_) {
    kernel_.set_device("/dev/kmsg", feed_.device());
    ProcessFinderOptions options;
    options.period = period;
    ProcessFinderCallbacks callbacks;
    callbacks.on_process = [this](const GpuProcess& process, const Status& followed) {
      if (followed) followed_.push_back(process.pid);
    };
    callbacks.on_server = [this](const MpsServer& server, const Status&) { servers_.push_back(server.pid); };
    WatcherOptions watcher;
    watcher.nvml_library.clear();
    WatcherCallbacks watcher_callbacks;
    watcher_callbacks.on_signal = note_fault();
    watcher_callbacks.on_incident = [this](const fault::Incident& incident) {
      incidents_.push_back(incident);
    };
    watcher_callbacks.on_exit = [this](const ProcessExit& exit) { ended_.push_back(exit.pid); };
    process_finder_ = std::make_unique<ProcessFinder>(*loop_, kernel_, clock_, options, callbacks, watcher,
                                                      watcher_callbacks);
    EXPECT_TRUE(process_finder_->watcher().start().empty());
  }

  void add(pid_t pid, const std::string& command, const std::string& domain) {
    kernel_.add_process(pid);
    const std::string folder = "/proc/" + std::to_string(pid);
    kernel_.set_file(folder + "/comm", "name\n");
    kernel_.set_file(folder + "/cmdline", command + "\0"s);
    kernel_.set_file(folder + "/environ",
                     "CUDA_MPS_PIPE_DIRECTORY=" + domain + "\0CUDA_MPS_LOG_DIRECTORY=/run/log\0"s);
  }
  void add_server(pid_t pid, const std::string& domain = "/run/a") {
    add(pid, "nvidia-cuda-mps-server", domain);
  }
  void add_tenant(pid_t pid, const std::string& domain = "/run/a") {
    add(pid, "tenant", domain);
    kernel_.give_descriptor(pid, 9, "/dev/nvidia-uvm", FakeUvmTools::va_space());
  }

  void push_xid_of(pid_t pid) {
    feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=" + std::to_string(pid) +
               ", name=nvidia-cuda-mps, channel 0x0000000a\n");
  }

  FakeUvmTools tools_;
  os::FakeRecordFeed feed_;
  std::unique_ptr<ProcessFinder> process_finder_;
  std::vector<pid_t> followed_;
  std::vector<pid_t> servers_;
  std::vector<pid_t> ended_;
  std::vector<fault::Incident> incidents_;
};

TEST_F(ProcessFinderTest, FollowsWhoIsThereAndWhoComesLater) {
  add_tenant(10);
  ASSERT_TRUE(process_finder_->look_around(Whom::Everybody));
  EXPECT_EQ(followed_, std::vector<pid_t>({10}));
  EXPECT_TRUE(process_finder_->watcher().hears_uvm_of(10));
  add_tenant(11);
  ASSERT_TRUE(run_until([&] { return followed_.size() == 2; }));
  EXPECT_EQ(followed_[1], 11);
  kernel_.exit_process(10, {});
  EXPECT_TRUE(run_until([&] { return ended_ == std::vector<pid_t>({10}); }));
}

TEST_F(ProcessFinderTest, AServersXidGetsTheDomainOfItsEnvironment) {
  add_server(20);
  ASSERT_TRUE(process_finder_->look_around(Whom::Everybody));
  EXPECT_EQ(servers_, std::vector<pid_t>({20}));
  push_xid_of(20);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].domain, "/run/a");
}

TEST_F(ProcessFinderTest, AServerThatNobodyHasSeenYetIsAskedFor) {
  add_server(20);
  push_xid_of(20);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].domain, "/run/a");
}

TEST_F(ProcessFinderTest, OneProcessBringsItsDomainAndNobodyElse) {
  add_tenant(10);
  add_tenant(11);
  add_tenant(12, "/run/b");
  add_server(20);
  add_server(21, "/run/b");
  ASSERT_TRUE(process_finder_->follow(10));
  EXPECT_EQ(followed_, std::vector<pid_t>({10}));
  ASSERT_TRUE(process_finder_->look_around(Whom::SameDomains));
  EXPECT_EQ(followed_, std::vector<pid_t>({10, 11}));
  EXPECT_EQ(servers_, std::vector<pid_t>({20}));
}

TEST_F(ProcessFinderTest, AProcessThatIsNotThereIsSaid) {
  const Status absent = process_finder_->follow(12);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::NotFound);
  EXPECT_EQ(absent.error().message, "there is no process 12");
}

class RareProcessFinderTest : public ProcessFinderTest {
 protected:
  RareProcessFinderTest() : ProcessFinderTest(std::chrono::hours(1)) {}
};

TEST_F(RareProcessFinderTest, WhoCameUpSinceTheLastLookIsNotOverlookedAsACulprit) {
  add_server(20);
  add_tenant(10);
  ASSERT_TRUE(process_finder_->look_around(Whom::Everybody));
  add_tenant(11);
  clock_.advance(std::chrono::seconds(1));
  push_xid_of(20);
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  EXPECT_EQ(followed_, std::vector<pid_t>({10, 11}));
  EXPECT_EQ(incidents_[0].culprit.confidence, fault::Confidence::Unknown);
}

}  // namespace
}  // namespace firebreak::watch
