// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/watcher.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "agent/faults/watch/report.h"
#include "agent/faults/watch/uvm_queue.h"
#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/watch/isolation_test_support.h"

namespace firebreak::watch {
namespace {

constexpr pid_t rogue = 4711;
constexpr pid_t server = 99;

class WatcherTest : public DetectorTest {
 protected:
  WatcherTest() : tools_(kernel_) {
    kernel_.set_device("/dev/kmsg", feed_.device());
    kernel_.add_process(rogue);
    kernel_.give_descriptor(rogue, 11, "/dev/nvidia-uvm", FakeUvmTools::va_space());
    options_.nvml_library.clear();
    options_.places.domain_of_server = [](pid_t pid) {
      return pid == server ? std::optional<std::string>("a") : std::nullopt;
    };
    options_.ask_for_clients = [this](const std::string& domain) { asked_.push_back(domain); };
    make_watcher();
  }

  void make_watcher() {
    WatcherCallbacks callbacks;
    callbacks.on_signal = note_fault();
    callbacks.on_incident = [this](const fault::Incident& incident) { incidents_.push_back(incident); };
    callbacks.on_exit = [this](const ProcessExit& exit) { exits_.push_back(exit); };
    callbacks.on_gap = note_gap();
    watcher_ = std::make_unique<Watcher>(*loop_, kernel_, clock_, options_, callbacks);
  }

  void follow_rogue() {
    EXPECT_TRUE(watcher_->start().empty());
    ASSERT_TRUE(watcher_->follow({.pid = rogue, .gpu = 0, .domain = "a", .tenant = "rogue"}));
  }
  void post_fatal_fault() {
    abi::UvmFatalFault info{};
    info.event_type = abi::UvmEventType::FatalFault;
    info.fault_type = abi::UvmFaultType::InvalidPde;
    info.access_type = abi::UvmAccessType::Write;
    info.address = 0x7000dead0000;
    info.timestamp_ns = static_cast<std::uint64_t>(to_ns(clock_.now()));
    tools_.post(abi::UvmEvent::of(info));
  }

  FakeUvmTools tools_;
  os::FakeRecordFeed feed_;
  WatcherOptions options_;
  std::unique_ptr<Watcher> watcher_;
  std::vector<fault::Incident> incidents_;
  std::vector<ProcessExit> exits_;
  std::vector<std::string> asked_;  ///< domains whose clients were asked for
};

TEST_F(WatcherTest, WhoIsBeingEndedWhenAnXidComesCausedIt) {
  follow_rogue();
  ASSERT_TRUE(run_until([&] { return watcher_->hears_uvm_of(rogue); }));
  kernel_.set_file("/proc/4711/stat", "4711 (rogue) D 1 1 1 0 -1 4194564 0 0 0");
  feed_.push(
      "4,1,1,-;NVRM: Xid (PCI:0000:00:05): 31, pid=99, name=nvidia-cuda-mps, channel 0x0000000a, intr "
      "00000000. "
      "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_GCC faulted @ 0x7fe3_8f760000. Fault is of type FAULT_PDE "
      "ACCESS_TYPE_VIRT_READ\n");
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 1; }));
  EXPECT_EQ(incidents_[0].fault_class, fault::FaultClass::Termination);
  EXPECT_EQ(incidents_[0].culprit.confidence, fault::Confidence::Unknown) << "who else has died is not known";
  watcher_->note_clients("a", clock_.now(), {rogue});
  EXPECT_EQ(incidents_.back().culprit.pid, rogue);
  EXPECT_EQ(incidents_.back().culprit.confidence, fault::Confidence::Certain);
  // A conclusion is no signal of its own.
  EXPECT_EQ(faults_.size(), 1u);
}

TEST_F(WatcherTest, AKernelLogThatCannotBeReadIsSaidUntilItCan) {
  follow_rogue();
  const auto missing = [&] { return watcher_->sources().front().missing; };
  EXPECT_FALSE(missing());
  feed_.push_failure(Error{ErrorCode::Internal, "read: No such device", {}});
  feed_.push_failure(Error{ErrorCode::Internal, "read: No such device", {}});
  ASSERT_TRUE(run_until([&] { return missing().has_value(); }));
  EXPECT_THAT(text_of(watcher_->sources().front()),
              testing::HasSubstr("not heard: kmsg: read: No such device"));
  EXPECT_EQ(gaps_.size(), 2u);  // the record, and the log
  os::FakeRecordFeed mended;
  kernel_.set_device("/dev/kmsg", mended.device());
  ASSERT_TRUE(run_until([&] { return !missing(); }));
  mended.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(WatcherTest, OfAnSmFaultNobodyIsNamedBeforeMpsHasSaidWhoElseWasThere) {
  follow_rogue();
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  EXPECT_EQ(incidents_.back().culprit.confidence, fault::Confidence::Unknown);
  EXPECT_THAT(asked_, testing::ElementsAre("a"));
  watcher_->note_clients("a", clock_.now(), {rogue, 4712});
  EXPECT_EQ(incidents_.back().culprit.confidence, fault::Confidence::Unknown);
  clock_.advance(std::chrono::milliseconds(1));
  watcher_->note_clients("a", clock_.now(), {rogue});
  EXPECT_EQ(incidents_.back().culprit.confidence, fault::Confidence::Unknown) << "the other has just left";
}

TEST_F(WatcherTest, WhoIsAloneByMpsListIsProbable) {
  follow_rogue();
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  watcher_->note_clients("a", clock_.now(), {rogue});
  EXPECT_EQ(incidents_.back().culprit.confidence, fault::Confidence::Probable);
  EXPECT_EQ(incidents_.back().culprit.pid, rogue);
}

/// MPS names it when it is gone, so nobody tells where it is known to be.
class WatcherOfTheUnnamed : public WatcherTest, public testing::WithParamInterface<bool> {};

TEST_P(WatcherOfTheUnnamed, IsJudgedWhereItWasToldToRunAndNotWhereItSaysThatItIs) {
  const bool is_told = GetParam();
  EXPECT_TRUE(watcher_->start().empty());
  ASSERT_TRUE(watcher_->follow({.pid = rogue, .gpu = 0, .tenant = "rogue", .said = "a", .is_told = is_told}));
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  watcher_->note_clients("a", clock_.now(), {rogue});
  EXPECT_EQ(incidents_.back().culprit.pid == rogue, is_told);
}

INSTANTIATE_TEST_SUITE_P(Both, WatcherOfTheUnnamed, testing::Bool());

TEST_F(WatcherTest, SilenceOfAQueueThatLostEventsClearsNobody) {
  follow_rogue();
  ASSERT_TRUE(run_until([&] { return watcher_->hears_uvm_of(rogue); }));
  for (unsigned i = 0; i < UvmQueue::entries + 9; ++i) post_fatal_fault();
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  EXPECT_EQ(gaps_[0].pid, rogue);
  EXPECT_TRUE(gaps_[0].danger);
}

TEST_F(WatcherTest, AMemoryFaultsSignalsAreOneIncidentWithItsCulprit) {
  follow_rogue();
  EXPECT_TRUE(watcher_->hears_uvm_of(rogue));
  post_fatal_fault();
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 1; }));
  feed_.push(
      "4,1,1,-;NVRM: Xid (PCI:0000:00:05): 31, pid=5, name=x, channel 0x00000008, intr 00000000. MMU Fault: "
      "ENGINE "
      "GRAPHICS GPC2 GPCCLIENT_T1_3 faulted @ 0x7000_dead0000. Fault is of type FAULT_PDE "
      "ACCESS_TYPE_VIRT_WRITE\n");
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 2; }));
  watcher_->finish();
  ASSERT_EQ(incidents_.size(), 3u);
  EXPECT_EQ(faults_.size(), 2u);
  EXPECT_EQ(incidents_[2].id, 1u);
  EXPECT_TRUE(incidents_[2].closed);
  EXPECT_EQ(incidents_[2].culprit.tenant, "rogue");
}

TEST_F(WatcherTest, AServersXidGetsItsDomain) {
  follow_rogue();
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].domain, "a");
}

TEST_F(WatcherTest, TheFaultThatEndedAProcessComesBeforeItsEnd) {
  follow_rogue();
  post_fatal_fault();
  kernel_.exit_process(rogue, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  ASSERT_FALSE(faults_.empty());
  EXPECT_EQ(faults_[0].source, fault::FaultSource::UvmEvent);
  settle();
  EXPECT_FALSE(watcher_->hears_uvm_of(rogue));
}

// A job of a shell, an exception of Python, a key of the terminal: nobody has lost anything.
TEST_F(WatcherTest, AnEndIsNoFaultWhereNoWorkOnTheGpuWasUnderWay) {
  WorkLeft work = WorkLeft::Unknown;
  options_.work_left_by = [&](pid_t) { return work; };
  constexpr pid_t without_gpu = 4720;
  struct End {
    const char* what;
    pid_t pid;
    os::ExitStatus status;
    WorkLeft work;
    std::size_t incidents;
  };
  const std::array ends = {End{"it never had the GPU", without_gpu, {0, SIGKILL}, WorkLeft::Unknown, 0},
                           End{"`exit 7`", rogue, {7, 0}, WorkLeft::Unknown, 0},
                           End{"Ctrl-C", rogue, {0, SIGINT}, WorkLeft::Unknown, 0},
                           End{"nobody reads its pipe", rogue, {0, SIGPIPE}, WorkLeft::Unknown, 0},
                           End{"an alarm", rogue, {0, SIGALRM}, WorkLeft::Unknown, 0},
                           End{"a limit of time", rogue, {0, SIGXCPU}, WorkLeft::Unknown, 0},
                           End{"a crash", rogue, {0, SIGSEGV}, WorkLeft::Unknown, 1},
                           End{"its work has ended", rogue, {0, SIGKILL}, WorkLeft::None, 0},
                           End{"it was killed", rogue, {0, SIGKILL}, WorkLeft::Unknown, 1},
                           End{"exit in mid-kernel", rogue, {7, 0}, WorkLeft::Running, 1},
                           End{"success in mid-kernel", rogue, {0, 0}, WorkLeft::Running, 1}};
  for (const End& end : ends) {
    SCOPED_TRACE(end.what);
    incidents_.clear();
    exits_.clear();
    kernel_.add_process(end.pid);
    if (end.pid == rogue) kernel_.give_descriptor(rogue, 11, "/dev/nvidia-uvm", FakeUvmTools::va_space());
    make_watcher();
    (void)watcher_->start();
    ASSERT_TRUE(
        watcher_->follow({.pid = end.pid, .gpu = 0, .domain = "a", .tenant = {}}, Parentage::OurChild));
    work = end.work;
    kernel_.exit_process(end.pid, end.status);
    ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
    EXPECT_EQ(incidents_.size(), end.incidents);
    watcher_->finish();
  }
}

// What it left behind on the GPU tells of it all the same, and it is named.
TEST_F(WatcherTest, AnEndThatAnXidFollowsIsAFault) {
  follow_rogue();
  ASSERT_TRUE(run_until([&] { return watcher_->hears_uvm_of(rogue); }));
  kernel_.exit_process(rogue, {7, 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_TRUE(incidents_.empty());
  feed_.push(
      "4,1,1,-;NVRM: Xid (PCI:0000:00:05): 31, pid=99, name=nvidia-cuda-mps, channel 0x0000000a, intr "
      "00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_GCC faulted @ 0x7fe3_8f760000. Fault is of type "
      "FAULT_PDE ACCESS_TYPE_VIRT_READ\n");
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  EXPECT_EQ(incidents_.back().fault_class, fault::FaultClass::Termination);
}

TEST_F(WatcherTest, AnExpectedEndIsNoFault) {
  follow_rogue();
  watcher_->expect_exit(rogue);
  kernel_.exit_process(rogue, {0, 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_TRUE(exits_[0].expected);
  EXPECT_TRUE(faults_.empty());
}

TEST_F(WatcherTest, WithoutTheKernelLogTheRestStillWorks) {
  kernel_.refuse("/dev/kmsg", Error{ErrorCode::PermissionDenied, "open /dev/kmsg: Permission denied", {}});
  const std::vector<std::string> missing = watcher_->start();
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_THAT(missing[0], testing::HasSubstr("dmesg_restrict"));
  ASSERT_TRUE(watcher_->follow({.pid = rogue, .gpu = 0, .domain = {}, .tenant = {}}));
  post_fatal_fault();
  EXPECT_TRUE(run_until([&] { return incidents_.size() == 1; }));
}

TEST_F(WatcherTest, IncidentsCloseByThemselves) {
  follow_rogue();
  post_fatal_fault();
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 1; }));
  clock_.advance(std::chrono::seconds(3));
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 2; }));
  EXPECT_TRUE(incidents_[1].closed);
}

TEST_F(WatcherTest, AProcessThatIsNotThereIsAnError) {
  const Status followed = watcher_->follow({.pid = 1, .gpu = 0, .domain = {}, .tenant = {}});
  ASSERT_FALSE(followed);
  EXPECT_EQ(followed.error().code, ErrorCode::NotFound);
}

TEST_F(WatcherTest, ACoreDumpsLinesNameTheCulpritOfAnSmFault) {
  follow_rogue();
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 1; }));
  watcher_->note_output(rogue,
                        "step 5\n[06:43:15.2] coredump: Detected an exception of type "
                        "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)\n[06:43:15.2] coredump:   - SM");
  watcher_->note_output(rogue,
                        ": 124\n[06:43:15.2] coredump:   - Warp: 3\n"
                        "[06:43:15.2] coredump:   - PC 0x7462c3bac310\n");
  ASSERT_EQ(incidents_.size(), 2u);
  EXPECT_EQ(incidents_[1].id, 1u);
  EXPECT_EQ(incidents_[1].culprit.confidence, fault::Confidence::Certain);
  EXPECT_EQ(incidents_[1].kind, "WARP_MISALIGNED_ADDRESS, SM 124, warp 3, PC 0x7462c3bac310");
}

TEST_F(WatcherTest, LastWordsThatComeAfterTheEndCount) {
  follow_rogue();
  feed_.push("4,1,1,-;NVRM: Xid (PCI:0000:00:05): 43, pid=99, name=nvidia-cuda-mps, channel 0x0000000a\n");
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 1; }));
  kernel_.exit_process(rogue, {.exit_code = 3, .signal = 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  watcher_->note_output(rogue,
                        "[06:43:15.2] coredump: Detected an exception of type "
                        "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)\n"
                        "[06:43:15.2] coredump:   - Warp: 3\n[06:43:15.2] coredump:   - PC 0x10\n");
  EXPECT_EQ(incidents_.back().id, 1u);
  EXPECT_EQ(incidents_.back().culprit.pid, rogue);
  EXPECT_EQ(incidents_.back().kind, "WARP_MISALIGNED_ADDRESS, warp 3, PC 0x10");
}

TEST_F(WatcherTest, AHangIsAnIncidentOfItsProcess) {
  follow_rogue();
  const auto stands_still = [this]() -> std::optional<std::uint64_t> {
    clock_.advance(Milliseconds(1));
    return 3;
  };
  ASSERT_TRUE(watcher_->follow_progress(rogue, stands_still, {.patience = Milliseconds(4), .readings = 4}));
  EXPECT_FALSE(watcher_->follow_progress(1, stands_still));
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  EXPECT_EQ(incidents_[0].kind, "no progress for 4 ms");
  watcher_->note_clients("a", clock_.now(), {rogue});
  EXPECT_EQ(incidents_.back().culprit.pid, rogue);
}

TEST_F(WatcherTest, DetectorsThatAreNotThereAreOneLineEach) {
  WatcherOptions options;
  options.nvml_library = "libnvidia-ml-that-is-not-there.so.1";
  options.mps_log_directories = {"/nowhere/at/all"};
  Watcher watcher(*loop_, kernel_, clock_, options, {});
  const std::vector<std::string> missing = watcher.start();
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_THAT(missing[0], testing::HasSubstr("no NVML events"));
  EXPECT_THAT(missing[1], testing::HasSubstr("no MPS server log"));
}

TEST_F(WatcherTest, SaysOfEachSourceWhetherItIsHeard) {
  kernel_.remove("/dev/nvidia-uvm-tools");
  EXPECT_EQ(watcher_->start().size(), 1u);
  const std::vector<SourceState>& sources = watcher_->sources();
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].source, fault::FaultSource::Xid);
  EXPECT_FALSE(sources[0].missing);
  EXPECT_EQ(sources[1].source, fault::FaultSource::UvmEvent);
  ASSERT_TRUE(sources[1].missing);
  EXPECT_THAT(to_string(*sources[1].missing), testing::HasSubstr("nvidia-modprobe"));
}

/// A watcher that hears nothing but the log of one MPS server.
class MpsLogWatcherTest : public DetectorTest {
 protected:
  void append(const std::string& text) const {
    std::ofstream(directory_.path() + "/server.log", std::ios::app)
        << "[2026-11-21 14:39:55.123 Server  4711] " << text << "\n";
  }
  static std::string left_line(pid_t pid) {
    return "Server failed to recevie command with status 806, assuming client {PID: " + std::to_string(pid) +
           ", Context ID: 1} exit";
  }
  static WatcherOptions nothing_else() {
    WatcherOptions options;
    options.xid = options.uvm = false;
    options.nvml_library.clear();
    return options;
  }
  WatcherCallbacks callbacks() {
    WatcherCallbacks callbacks;
    callbacks.on_signal = note_fault();
    return callbacks;
  }

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  os::RealKernel real_;
  Watcher watcher_{*loop_, real_, clock_, nothing_else(), callbacks()};
};

TEST_F(MpsLogWatcherTest, ALogThatIsAddedLaterSpeaksForItsDomain) {
  EXPECT_TRUE(watcher_.start().empty());
  ASSERT_TRUE(watcher_.add(mps_log_in(directory_.path(), "a")));
  EXPECT_FALSE(watcher_.add(mps_log_in("/nowhere/at/all", "a")));
  append("Client 815 encountered a fatal exception");
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_[0].domain, "a");
}

TEST_F(MpsLogWatcherTest, AnExpectedEndOfSomebodyWhoIsNotFollowedIsNoFault) {
  EXPECT_TRUE(watcher_.start().empty());
  ASSERT_TRUE(watcher_.add(mps_log_in(directory_.path(), "a")));
  watcher_.expect_exit(815);
  append(left_line(815));
  append(left_line(816));
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_[0].pid, 816);
}

/// Somebody else has the number by then.
TEST_F(MpsLogWatcherTest, AnAnnouncedEndIsNotExpectedForEver) {
  EXPECT_TRUE(watcher_.start().empty());
  ASSERT_TRUE(watcher_.add(mps_log_in(directory_.path(), "a")));
  watcher_.expect_exit(815);
  clock_.advance(std::chrono::minutes(2));
  append(left_line(815));
  append(left_line(816));
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_[0].pid, 815);
}

TEST_F(WatcherTest, FaultIsolationIsASourceWhereTheDriverHasIt) {
  const auto has_isolation = [&] {
    return std::ranges::any_of(watcher_->sources(), [](const SourceState& source) {
      return source.source == fault::FaultSource::Isolation;
    });
  };
  watcher_->start();
  EXPECT_FALSE(has_isolation());
  const FakeIsolation module(kernel_);
  WatcherOptions options;
  options.nvml_library.clear();
  Watcher another(*loop_, kernel_, clock_, options, {});
  another.start();
  ASSERT_EQ(another.sources().size(), watcher_->sources().size() + 1);
  EXPECT_EQ(text_of(another.sources().back()), "heard: UVM isolation");
}

TEST_F(WatcherTest, AContainedFaultIsOneIncidentWithItsUvmEventAndSaysThatItHarmedNobody) {
  FakeIsolation module(kernel_);
  follow_rogue();
  ASSERT_TRUE(run_until([&] { return watcher_->hears_uvm_of(rogue); }));
  post_fatal_fault();
  ASSERT_TRUE(run_until([&] { return !incidents_.empty(); }));
  EXPECT_FALSE(fault::is_contained(incidents_.back()));
  module.add(1, rogue);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  watcher_->finish();
  const fault::Incident& incident = incidents_.back();
  EXPECT_EQ(incident.id, 1u);
  EXPECT_EQ(incident.signals.size(), 2u);
  EXPECT_TRUE(fault::is_contained(incident));
  EXPECT_EQ(incident.kind, "contained: write, invalid pde, no_range");
  EXPECT_EQ(incident.domain, "a");
  EXPECT_EQ(incident.culprit.pid, rogue);
  EXPECT_EQ(incident.culprit.tenant, "rogue");
  EXPECT_EQ(incident.culprit.confidence, fault::Confidence::Certain);
}

TEST_F(WatcherTest, AFaultThatIsolationLetThroughIsNotContained) {
  FakeIsolation module(kernel_);
  follow_rogue();
  module.add(1, rogue, "contained");
  module.add(2, rogue, "limit");
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  EXPECT_FALSE(fault::is_contained(incidents_.back()));
}

TEST_F(WatcherTest, WhomTheDriverNamesIsWhoIsFollowedWhateverTheDriverSaysOfItsGpu) {
  FakeIsolation module(kernel_);
  EXPECT_TRUE(watcher_->start().empty());
  ASSERT_TRUE(watcher_->follow({.pid = rogue, .gpu = 1, .domain = "a", .tenant = "rogue"}));
  module.add(1, rogue);
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_[0].gpu.number, 1u);
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].tenant, "rogue");
}

TEST_F(WatcherTest, AFaultOfAnotherGpuIsAnotherIncident) {
  options_.places.gpus = {"0000:00:05", "0000:00:06"};
  options_.places.gpu_of_domain = [](const std::string&) { return std::optional<std::uint32_t>(1); };
  make_watcher();
  EXPECT_TRUE(watcher_->start().empty());
  ASSERT_TRUE(watcher_->follow({.pid = rogue, .domain = "a", .tenant = "rogue"}, Parentage::OurChild));
  feed_.push("3,1,1,-;NVRM: Xid (PCI:0000:00:05): 79, GPU has fallen off the bus.\n");
  feed_.push("3,2,1,-;NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus.\n");
  kernel_.exit_process(rogue, {0, 9});
  ASSERT_TRUE(run_until([&] { return incidents_.size() == 3; }));
  EXPECT_EQ(describe(incidents_[0].gpu), "GPU 0 (0000:00:05)");
  EXPECT_EQ(describe(incidents_[1].gpu), "GPU 0000:99:00, which is none of this machine's");
  EXPECT_EQ(describe(incidents_[2].gpu), "GPU 1 (0000:00:06)");
  EXPECT_EQ(incidents_[2].culprit.pid, rogue);
}

TEST_F(WatcherTest, WhoWasSparedIsNoSignal) {
  FakeIsolation module(kernel_);
  follow_rogue();
  module.add(1, rogue, "spared");
  module.add(2, rogue, "contained");
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_.size(), 1u);
  EXPECT_TRUE(faults_[0].contained);
}

TEST_F(WatcherTest, OutcomesAreHeardWhileIsolationIsOn) {
  const auto set_mode = [&](const std::string& mode) {
    kernel_.set_file(isolation_state_path, "format 1\nmode " + mode + "\n");
  };
  FakeIsolation module(kernel_);
  set_mode("on");
  EXPECT_FALSE(watcher_->hears_outcomes()) << "nothing was started";
  watcher_->start();
  EXPECT_TRUE(watcher_->hears_outcomes());
  set_mode("report");
  EXPECT_FALSE(watcher_->hears_outcomes());
  set_mode("on");
  EXPECT_TRUE(watcher_->hears_outcomes());
  module.break_off();
  ASSERT_TRUE(run_until([&] { return !watcher_->hears_outcomes(); }));
}

}  // namespace
}  // namespace firebreak::watch
