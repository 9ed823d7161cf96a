// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/core_dump_detector.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ground/base/units.h"
#include "ground/os/file.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

constexpr pid_t decode = 10;
constexpr const char* exception =
    "[06:43:15.2] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)\n"
    "[06:43:15.2] coredump:   - Warp: 3\n"
    "[06:43:15.2] coredump:   - PC 0x10\n";

class CoreDumpDetectorTest : public DetectorTest {
 protected:
  CoreDumpDetectorTest() { at_.options.merge_window = Milliseconds(1); }
  void follow() {
    ASSERT_TRUE(
        detector_.follow({.pid = decode, .gpu = 1, .domain = "a", .tenant = "decode"}, Parentage::Stranger));
  }

  Workplace at_ = workplace();
  CoreDumpDetector detector_{at_};
};

TEST_F(CoreDumpDetectorTest, WhatAProcessSaysIsItsFault) {
  detector_.note_output(decode, exception);
  EXPECT_TRUE(faults_.empty()) << "nobody follows it";
  follow();
  detector_.note_output(decode + 1, exception);
  EXPECT_TRUE(faults_.empty());
  detector_.note_output(decode, exception);
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].source, fault::FaultSource::CoreDump);
  EXPECT_EQ(faults_[0].pid, decode);
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].tenant, "decode");
}

TEST_F(CoreDumpDetectorTest, LastWordsCountForAWhile) {
  follow();
  detector_.stop(decode);
  detector_.note_output(decode, exception);
  EXPECT_EQ(faults_.size(), 1u);
  EXPECT_TRUE(run_until([&] {
    faults_.clear();
    clock_.advance(CoreDumpDetector::between_exceptions);
    detector_.note_output(decode, exception);
    return faults_.empty();
  }));
}

/// A process that stays, with a standard error that it may let grow as it likes.
class CoreDumpFileTest : public DetectorTest {
 protected:
  CoreDumpFileTest() { std::tie(pid_, process_) = start(path_); }
  std::pair<pid_t, os::Fd> start(const std::string& path) {
    os::SpawnRequest request;
    const os::Fd errors = real_.open(path, O_WRONLY | O_CREAT | O_APPEND).value();
    request.command = {"sleep", "1000"};
    request.environment = {{fault::core_dump_progress_variable, "1"}};
    request.standard_error = errors.get();
    const pid_t pid = real_.spawn(request).value();
    return {pid, std::move(real_.pidfd_open(pid).value())};
  }
  void TearDown() override { EXPECT_TRUE(os::kill_child(real_, pid_, process_)); }

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  std::string path_ = directory_.path() + "/errors";
  struct Kernel : os::RealKernel {
    int looks = 0;  ///< at anybody's standard error
    Result<os::Fd> open(const std::string& path, int flags) override {
      looks += path.starts_with("/proc/") && path.ends_with("/fd/2");
      return os::RealKernel::open(path, flags);
    }
  };
  Kernel real_;
  pid_t pid_ = 0;
  os::Fd process_;
  Workplace at_ = workplace(real_);
  CoreDumpDetector detector_{at_};
};

TEST_F(CoreDumpFileTest, WhatGrowsTooFastIsAGapWithoutDangerAndItsEndIsHeard) {
  ASSERT_TRUE(
      detector_.follow({.pid = pid_, .gpu = 1, .domain = "a", .tenant = "decode"}, Parentage::OurChild));
  std::filesystem::resize_file(path_, 200 * gib);
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  std::filesystem::resize_file(path_, 400 * gib);
  std::ofstream(path_, std::ios::app) << '\n' << exception;
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_[0].pid, pid_);
  ASSERT_EQ(gaps_.size(), 1u) << "one word for all of it";
  EXPECT_EQ(gaps_[0].source, fault::FaultSource::CoreDump);
  EXPECT_EQ(gaps_[0].pid, pid_);
  EXPECT_EQ(gaps_[0].domain, "a");
  EXPECT_FALSE(gaps_[0].danger);
  clock_.advance(CoreDumpDetector::between_gaps);
  std::filesystem::resize_file(path_, 600 * gib);
  EXPECT_TRUE(run_until([&] { return gaps_.size() == 2; }));
}

TEST_F(CoreDumpFileTest, OfManyExceptionsOneASecondIsLookedInto) {
  constexpr int others = 3;
  for (int i = 0; i <= others; ++i)
    ASSERT_TRUE(
        detector_.follow({.pid = pid_ + i, .gpu = 1, .domain = "a", .tenant = "t"}, Parentage::OurChild));
  for (const std::size_t second : {1u, 2u}) {
    real_.looks = 0;
    for (int i = 0; i < 100; ++i) detector_.note_output(pid_, exception);
    EXPECT_EQ(faults_.size(), second);
    EXPECT_LE(real_.looks, others + 1) << "only who is followed is looked at";
    clock_.advance(CoreDumpDetector::between_exceptions);
  }
}

TEST_F(CoreDumpFileTest, TheKernelOfTheOneIsHeardAndNoMore) {
  ASSERT_TRUE(detector_.follow({.pid = pid_, .gpu = 1, .domain = "a", .tenant = "t"}, Parentage::OurChild));
  const std::string kernel = "[06:43:15.209486] coredump:   #0\t0x7462c3bac620\trogue\n";
  for (int i = 0; i < 3; ++i) detector_.note_output(pid_, std::string(exception) + kernel);
  ASSERT_EQ(faults_.size(), 2u);
  EXPECT_EQ(faults_[1].kind, faults_[0].kind + ", kernel rogue");
}

/// Else the looks would be as many as files times processes.
TEST_F(CoreDumpFileTest, EachIsLookedAtOnceASecondForAllFiles) {
  ASSERT_TRUE(detector_.follow({.pid = pid_, .gpu = 1, .domain = "a", .tenant = "t"}, Parentage::OurChild));
  std::vector<std::pair<pid_t, os::Fd>> others;
  for (int i = 0; i < 4; ++i) {
    auto [pid, process] = start(path_ + std::to_string(i));
    ASSERT_TRUE(detector_.follow({.pid = pid, .gpu = 1, .domain = "a", .tenant = "t"}, Parentage::OurChild));
    others.emplace_back(pid, std::move(process));
  }
  real_.looks = 0;
  for (const auto& [pid, process] : others) detector_.note_output(pid, exception);
  EXPECT_EQ(faults_.size(), others.size());
  EXPECT_LE(real_.looks, static_cast<int>(others.size()) + 1);
  for (const auto& [pid, process] : others) EXPECT_TRUE(os::kill_child(real_, pid, process));
}

TEST_F(CoreDumpFileTest, TheLastWordsOfWhoLetItGrowAreReadAtOnce) {
  ASSERT_TRUE(
      detector_.follow({.pid = pid_, .gpu = 1, .domain = "a", .tenant = "decode"}, Parentage::OurChild));
  std::filesystem::resize_file(path_, 200 * gib);
  std::ofstream(path_, std::ios::app) << '\n' << exception;
  detector_.read_now(pid_);
  EXPECT_EQ(faults_.size(), 1u);
}

}  // namespace
}  // namespace firebreak::watch
