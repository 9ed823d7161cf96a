// SPDX-License-Identifier: Apache-2.0
/// A Watcher and its table, with rows of the test's own.
#include "agent/faults/watch/detectors.h"

#include <gmock/gmock.h>

#include <set>

#include "agent/faults/watch/watcher.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using fault::FaultSource;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr pid_t rogue = 4711;

/// Writes down what it is asked for, under its name.
class Recorder final : public Detector {
 public:
  struct Book {
    std::vector<std::string> lines;
    std::map<std::string, Error> refused;  ///< refusals by the line that would have been written
    const Workplace* at = nullptr;         ///< workplace of the last one that was made
    pid_t heard = 0;                       ///< process of which UVM is heard
  };
  Recorder(std::string name, Book& book) : name_(std::move(name)), book_(book) {}

  Status start() override { return write("start"); }
  Status follow(const Target& target, Parentage) override {
    return write("follow " + std::to_string(target.pid));
  }
  void stop(pid_t pid) override { (void)write("stop " + std::to_string(pid)); }
  void read_now(pid_t pid) override { (void)write("read " + std::to_string(pid)); }
  void suspect() override { (void)write("suspect"); }
  std::string remark() const override { return "of " + name_; }
  void note_output(pid_t, std::string_view text) override { (void)write(std::string(text)); }
  UvmHearing hears_uvm_of(pid_t pid) const override {
    return pid == book_.heard ? UvmHearing::Yes : UvmHearing::No;
  }

 private:
  Status write(const std::string& what) {
    const std::string line = name_ + " " + what;
    if (const auto refused = book_.refused.find(line); refused != book_.refused.end()) {
      return tl::unexpected<Error>(refused->second);
    }
    book_.lines.push_back(line);
    return {};
  }

  std::string name_;
  Book& book_;
};

class DetectorTableTest : public DetectorTest {
 protected:
  DetectorTableTest() {
    kernel_.add_process(rogue);
    kernel_.set_device("/dev/kmsg", feed_.device());
  }

  DetectorRow row(const std::string& name, FaultSource source, Listed listed = Listed::Never,
                  bool wanted = true) {
    const auto make = [this, name](const Workplace& at) {
      book_.at = &at;
      std::vector<std::unique_ptr<Detector>> made;
      made.push_back(std::make_unique<Recorder>(name, book_));
      return made;
    };
    return {source, listed, [wanted](const WatcherOptions&) { return wanted; }, make};
  }
  std::unique_ptr<Watcher> watcher(const DetectorTable& table) {
    WatcherOptions options;
    options.nvml_library.clear();
    options.uvm = false;
    WatcherCallbacks callbacks;
    callbacks.on_signal = [this](const fault::Fault& fault) {
      book_.lines.push_back("signal from " + std::string(to_string(fault.source)));
      faults_.push_back(fault);
    };
    callbacks.on_gap = note_gap();
    callbacks.on_incident = [this](const fault::Incident& incident) { incidents_.push_back(incident); };
    callbacks.on_exit = [this](const ProcessExit&) { book_.lines.emplace_back("exit"); };
    return std::make_unique<Watcher>(*loop_, kernel_, clock_, options, callbacks, table);
  }
  std::vector<std::string> written() { return std::exchange(book_.lines, {}); }
  static Target target() { return {.pid = rogue, .gpu = 0, .domain = "a", .tenant = "rogue"}; }
  static Error refusal(ErrorCode code) { return {code, "no", {}}; }

  os::FakeRecordFeed feed_;
  Recorder::Book book_;
  std::vector<fault::Incident> incidents_;
};

// HACKING.md: a row here is what it takes, beside the source's row and the build.
TEST_F(DetectorTableTest, OneMoreRowIsOneMoreDetectorFromStartToEnd) {
  DetectorTable table = all_detectors();
  table.push_back(row("mine", FaultSource::CudaError, Listed::Always));
  const auto watcher = this->watcher(table);
  EXPECT_THAT(watcher->start(), IsEmpty());
  EXPECT_THAT(written(), ElementsAre("mine start"));
  EXPECT_EQ(watcher->sources().back().source, FaultSource::CudaError);
  EXPECT_EQ(watcher->sources().back().remark, "of mine");
  ASSERT_TRUE(watcher->follow(target()));
  EXPECT_THAT(written(), ElementsAre("mine follow 4711"));
  fault::Fault fault;
  fault.source = FaultSource::CudaError;
  fault.fault_class = fault::FaultClass::Sm;
  set_subject(fault, target());
  fault.when = clock_.now();
  book_.at->on_fault(fault);
  EXPECT_THAT(written(), ElementsAre("signal from CUDA error")) << "its own word is no news to it";
  ASSERT_EQ(incidents_.size(), 1u);
  EXPECT_EQ(incidents_[0].domain, "a");
  kernel_.exit_process(rogue, {0, 9});
  ASSERT_TRUE(run_until([&] { return !book_.lines.empty() && book_.lines.back() == "exit"; }));
  EXPECT_THAT(written(), ElementsAre("mine read 4711", "signal from process exit", "mine suspect",
                                     "mine stop 4711", "exit"));
}

TEST_F(DetectorTableTest, WhatIsNotWantedIsNotMade) {
  const auto watcher = this->watcher({row("mine", FaultSource::CudaError, Listed::Always, false)});
  watcher->start();
  EXPECT_TRUE(watcher->follow(target()));
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_TRUE(watcher->sources().empty());
}

TEST_F(DetectorTableTest, ASourceThatIsNotThereIsSaidAsItsRowWantsItAndProcessesAreToldToIt) {
  for (const auto& [listed, code, lines] : {std::tuple(Listed::Always, ErrorCode::NotFound, 1),
                                            std::tuple(Listed::WhereItIs, ErrorCode::NotFound, 0),
                                            std::tuple(Listed::WhereItIs, ErrorCode::PermissionDenied, 1),
                                            std::tuple(Listed::Never, ErrorCode::PermissionDenied, 0)}) {
    book_.refused = {{"mine start", refusal(code)}};
    const auto watcher = this->watcher({row("mine", FaultSource::CudaError, listed)});
    EXPECT_EQ(watcher->start().size(), static_cast<std::size_t>(lines));
    EXPECT_TRUE(watcher->follow(target()));
    EXPECT_THAT(written(), ElementsAre("mine follow 4711"));
  }
}

TEST_F(DetectorTableTest, WhoIsRefusedByOneIsFollowedByNone) {
  const auto watcher = this->watcher({row("first", FaultSource::ProcessExit), row("second", FaultSource::Xid),
                                      row("third", FaultSource::Nvml)});
  watcher->start();
  written();
  book_.refused = {{"second follow 4711", refusal(ErrorCode::NotFound)}};
  EXPECT_EQ(watcher->follow(target()).error().code, ErrorCode::NotFound);
  EXPECT_THAT(written(), ElementsAre("first follow 4711", "first stop 4711"));
  EXPECT_FALSE(watcher->follow_progress(rogue, [] { return std::optional<std::uint64_t>(); }));
  book_.refused.clear();
  EXPECT_TRUE(watcher->follow(target()));
  EXPECT_THAT(written(), ElementsAre("first follow 4711", "second follow 4711", "third follow 4711"));
  // Words of before stay for a process that is followed already.
  book_.refused = {{"first follow 4711", refusal(ErrorCode::ResourceExhausted)}};
  EXPECT_FALSE(watcher->follow(target()));
  EXPECT_THAT(written(), IsEmpty());
  EXPECT_TRUE(watcher->follow_progress(rogue, [] { return std::optional<std::uint64_t>(); }));
}

TEST_F(DetectorTableTest, WhatASourceSaysIsASuspicionForTheOthers) {
  const auto watcher = this->watcher({row("xid", FaultSource::Xid), row("nvml", FaultSource::Nvml)});
  watcher->start();
  written();
  fault::Fault fault;
  fault.source = FaultSource::Xid;
  book_.at->on_fault(fault);
  EXPECT_THAT(written(), ElementsAre("signal from kmsg", "nvml suspect"));
  book_.at->on_gap({FaultSource::Xid, {}, {}, "lost"});
  EXPECT_THAT(written(), ElementsAre("xid suspect", "nvml suspect"));
  watcher->suspect();
  EXPECT_THAT(written(), ElementsAre("xid suspect", "nvml suspect"));
}

TEST_F(DetectorTableTest, AGapThatIsTheEndOfASourceIsItsState) {
  const auto watcher = this->watcher(
      {row("xid", FaultSource::Xid, Listed::Always), row("nvml", FaultSource::Nvml, Listed::Always)});
  watcher->start();
  Gap gap{FaultSource::Xid, {}, {}, "lost"};
  gap.silent_because = refusal(ErrorCode::Device);
  book_.at->on_gap(gap);
  EXPECT_TRUE(watcher->sources()[0].missing);
  EXPECT_FALSE(watcher->sources()[1].missing);
  // Losses of one process say nothing about the source.
  book_.at->on_gap({FaultSource::Xid, rogue, {}, "lost"});
  EXPECT_TRUE(watcher->sources()[0].missing);
  book_.at->on_gap({FaultSource::Xid, {}, {}, "heard again"});
  EXPECT_FALSE(watcher->sources()[0].missing);
}

TEST_F(DetectorTableTest, WhatIsAskedOfAWatcherAllOfThemAreAsked) {
  const auto watcher = this->watcher({row("first", FaultSource::Xid), row("second", FaultSource::Nvml)});
  watcher->start();
  written();
  watcher->note_output(rogue, "words");
  EXPECT_THAT(written(), ElementsAre("first words", "second words"));
  EXPECT_FALSE(watcher->hears_uvm_of(rogue));
  book_.heard = rogue;
  EXPECT_TRUE(watcher->hears_uvm_of(rogue));
  EXPECT_FALSE(watcher->lacks_uvm_of(rogue));
}

TEST_F(DetectorTableTest, OneThatIsAddedLaterIsKeptWhereItCanStart) {
  const auto watcher = this->watcher({});
  watcher->start();
  book_.refused = {{"bad start", refusal(ErrorCode::NotFound)}};
  EXPECT_FALSE(watcher->add(row("bad", FaultSource::MpsLog)));
  EXPECT_TRUE(watcher->add(row("good", FaultSource::MpsLog)));
  EXPECT_TRUE(watcher->follow(target()));
  EXPECT_THAT(written(), ElementsAre("good start", "good follow 4711"));
}

TEST(AllDetectors, AreOneRowEachAndTheFirstSaysWhetherThereIsTheProcess) {
  std::set<FaultSource> sources;
  for (const DetectorRow& row : all_detectors()) {
    EXPECT_TRUE(sources.insert(row.source).second) << to_string(row.source);
  }
  EXPECT_EQ(all_detectors().front().source, FaultSource::ProcessExit);
}

}  // namespace
}  // namespace firebreak::watch
