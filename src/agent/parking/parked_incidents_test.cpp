// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/parked_incidents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "tests/doubles/park/test_dump.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string culprits_dump =
    park::test::dump_of({park::test::code("load_word", 0x7f00dead0000, 0x100), park::test::sms(6),
                         park::test::warps(2, false), park::test::lanes(6)});

class ParkedIncidentsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = os::TemporaryDirectory::create();
    ASSERT_TRUE(made) << to_string(made.error());
    directory_.emplace(std::move(*made));
    path_ = directory_->path();
    incidents_.emplace(
        *loop_, kernel_, clock_, path_,
        [this](const std::string& domain, const std::string& id) { reports_.push_back(domain + " " + id); });
  }
  park::Evidence only() const {
    const auto ids = park::evidence_ids(path_);
    EXPECT_EQ(ids.size(), 1u);
    auto read = ids.empty() ? fail(ErrorCode::NotFound, "none") : park::read_evidence(path_, ids.front());
    EXPECT_TRUE(read) << to_string(read.error());
    return read ? *read : park::Evidence{};
  }
  void name() {
    incidents_->begin("a", {{culprit, "rogue-1"}, {12, "llm-12"}, {13, "13"}});
    clock_.advance(Milliseconds(40));
    fault::CoreDumpException exception;
    exception.type = "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS";
    incidents_->name("a", culprit, "rogue-1", exception);
  }
  void keep_dump() { keep(culprits_dump); }
  void keep(const std::string& dump) {
    park::BudgetedBytes bytes(std::make_shared<park::DumpBudget>(), park::DumpPipe::bytes_max);
    bytes.add(std::as_bytes(std::span(dump)));
    incidents_->keep_dump("a", culprit, "rogue-1", std::move(bytes), false);
  }
  /// Of those that nobody can read yet.
  std::uintmax_t unfinished_bytes() const {
    for (const auto& each : std::filesystem::directory_iterator(path_)) {
      if (each.path().filename().string().starts_with(".")) return each.file_size();
    }
    return 0;
  }

  const pid_t culprit = os::own_pid();
  std::unique_ptr<os::EventLoop> loop_ = std::move(os::EventLoop::create().value());
  os::RealKernel kernel_;
  FakeClock clock_;
  std::optional<os::TemporaryDirectory> directory_;
  std::string path_;
  std::vector<std::string> reports_;
  std::optional<ParkedIncidents> incidents_;
};

TEST_F(ParkedIncidentsTest, NothingIsWrittenBeforeSomebodyIsNamed) {
  incidents_->begin("a", {{12, "llm-12"}});
  incidents_->note("a", "halted");
  EXPECT_THAT(park::evidence_ids(path_), IsEmpty());
}

TEST_F(ParkedIncidentsTest, TheReportIsThereAsSoonAsTheCulpritIsNamed) {
  name();
  const park::Evidence read = only();
  EXPECT_THAT(read.id, HasSubstr("Z-rogue-1"));
  EXPECT_EQ(read.name, "rogue-1");
  EXPECT_EQ(read.domain, "a");
  EXPECT_EQ(read.exception.type, "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS");
  ASSERT_EQ(read.timeline.size(), 1u);
  EXPECT_DOUBLE_EQ(read.timeline[0].ms, 40);
  EXPECT_EQ(read.dump_bytes, 0u);
  EXPECT_THAT(read.affected, IsEmpty()) << "nobody knows yet what becomes of whom";
  EXPECT_THAT(reports_, ElementsAre("a " + read.id));
}

TEST_F(ParkedIncidentsTest, ItsDumpSaysMoreAndIsKept) {
  name();
  keep_dump();
  const park::Evidence read = only();
  EXPECT_EQ(read.exception.kernel, "load_word");
  EXPECT_EQ(read.exception.program_counter, 0x7f00dead0050U);
  EXPECT_EQ(read.dump_bytes, culprits_dump.size());
  EXPECT_EQ(kernel_.read_file(park::dump_path_of(path_, read.id)).value(), culprits_dump);
}

/// Somebody else waits for the loop meanwhile.
TEST_F(ParkedIncidentsTest, OfALongDumpAPieceIsWrittenInATurn) {
  constexpr std::uintmax_t most_bytes = std::uintmax_t{4} << 20;
  const std::string dump =
      park::test::dump_of({park::test::sms(6),
                           park::test::warps(2, false),
                           park::test::lanes(6),
                           {".cudbg.relfimg.dev0", 7, 0, std::string((std::size_t{13} << 20) + 1, 'x')}});
  name();
  keep(dump);
  EXPECT_EQ(park::dump_path_of(path_, only().id), "");
  std::uintmax_t before = 0;
  int turns = 0;
  for (; park::dump_path_of(path_, only().id).empty() && turns < 100; ++turns) {
    const std::uintmax_t now = unfinished_bytes();
    EXPECT_LE(now - before, most_bytes);
    before = now;
    loop_->run_once(Milliseconds(1'000));
  }
  EXPECT_EQ(turns, 3);
  EXPECT_EQ(kernel_.read_file(park::dump_path_of(path_, only().id)).value(), dump);
  EXPECT_EQ(unfinished_bytes(), 0u);
}

TEST_F(ParkedIncidentsTest, OfADumpThatIsNotFinishedNothingStays) {
  name();
  keep(park::test::dump_of({park::test::sms(6),
                            park::test::warps(2, false),
                            park::test::lanes(6),
                            {".cudbg.relfimg.dev0", 7, 0, std::string(std::size_t{5} << 20, 'x')}}));
  EXPECT_NE(unfinished_bytes(), 0u);
  incidents_.reset();
  EXPECT_EQ(unfinished_bytes(), 0u);
}

TEST_F(ParkedIncidentsTest, WhatBecameOfTheOthersIsSaidInTheWordsOfTheFaultsAccount) {
  name();
  incidents_->note_exit("a", 12);
  incidents_->note_exit("a", 99);  // a process that nobody knows
  PastFault another;
  another.id = "another";
  another.reports = {"report-of-another"};
  incidents_->settle(another);
  EXPECT_EQ(only().fault, "");
  PastFault fault;
  fault.id = "1mjnajx";
  fault.at = "2025-11-29T08:10:05Z";
  fault.touched = {{"llm", "ended before its domain fell"}};
  fault.reports = {only().id};
  incidents_->settle(fault);
  incidents_->end("a");
  keep_dump();
  const park::Evidence read = only();
  EXPECT_EQ(read.fault, "1mjnajx");
  EXPECT_EQ(read.when, "2025-11-29T08:10:05Z");
  ASSERT_EQ(read.affected.size(), 1u);
  EXPECT_EQ(read.affected[0].name, "llm");
  EXPECT_EQ(read.affected[0].became, "ended before its domain fell");
  EXPECT_EQ(read.timeline[1].what, "llm-12 has ended");
  EXPECT_EQ(reports_.size(), 1u) << "it is begun once";
}

TEST_F(ParkedIncidentsTest, WhatComesAfterTheFallIsNoPartOfItButADump) {
  name();
  incidents_->end("a");
  incidents_->note("a", "the next one");
  incidents_->note_exit("a", 12);
  keep_dump();
  const park::Evidence read = only();
  EXPECT_THAT(read.timeline.back().what, HasSubstr("the core dump of rogue-1 is complete"));
  EXPECT_EQ(read.dump_bytes, culprits_dump.size());
}

TEST_F(ParkedIncidentsTest, WhoIsNamedAfterTheFallIsNoneOfItsCulprits) {
  name();
  incidents_->end("a");
  incidents_->name("a", 12, "llm-12", {});
  incidents_->begin("a", {{12, "llm-12"}});
  EXPECT_EQ(only().name, "rogue-1");
}

TEST_F(ParkedIncidentsTest, ADumpOfADomainThatWasNotParkedIsKeptToo) {
  keep_dump();
  EXPECT_EQ(only().exception.kernel, "load_word");
}

TEST_F(ParkedIncidentsTest, DomainsHaveNothingToDoWithEachOther) {
  name();
  incidents_->note("b", "something");
  incidents_->end("b");
  EXPECT_EQ(only().timeline.size(), 1u);
}

}  // namespace
}  // namespace firebreak::agent
