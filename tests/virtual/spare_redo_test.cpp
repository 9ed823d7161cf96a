// SPDX-License-Identifier: Apache-2.0
/// Work that was under way when a domain died: done again where that is proved, else refused with the reason.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/doubles/base/test_seed.h"
#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

using testing::HasSubstr;

/// So far apart that there is none.
const Environment without_marks{{"FIREBREAK_SPARE_REDO", "1000000000000000"}};

class SpareRedo : public Spare {
 protected:
  /// With its memory, and protected.
  std::unique_ptr<Client> start_protected(const Environment& besides = {}) {
    return prepared(start_with_spare("init_without_variables", besides));
  }
  std::unique_ptr<Client> prepared(std::unique_ptr<Client> program) {
    EXPECT_EQ(program->tell("redo prepare"), CUDA_SUCCESS);
    page_.emplace(program->pid());
    EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
    return program;
  }
  static CUresult give(Client& program, const std::vector<std::string>& what) {
    for (const std::string& each : what)
      if (const CUresult given = program.tell("redo give " + each); given != CUDA_SUCCESS) return given;
    return CUDA_SUCCESS;
  }
  void give_first(Client& program, const std::vector<std::string>& what) {
    if (what.empty()) return;
    EXPECT_EQ(give(program, what), CUDA_SUCCESS);
    EXPECT_EQ(program.tell("redo wait"), CUDA_SUCCESS);
    EXPECT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  }
  /// What a program sees in its memory that has given all this and nobody else's fault.
  unsigned long long right_after(const std::vector<std::string>& what,
                                 const std::vector<std::string>& first = {}) {
    const auto model = start_plain("model");
    EXPECT_EQ(model->tell("redo prepare"), CUDA_SUCCESS);
    EXPECT_EQ(give(*model, first), CUDA_SUCCESS);
    EXPECT_EQ(give(*model, what), CUDA_SUCCESS);
    EXPECT_EQ(model->tell("redo wait"), CUDA_SUCCESS);
    return model->ask("redo digest").value;
  }
  /// It takes clients, once nobody who was hit by its fault is there.
  void await_open(const std::string& domain) {
    EXPECT_TRUE(eventually([&] {
      Client visitor(kernel_, in_domain(domain), FIREBREAK_PLAIN_PROGRAM);
      const bool is_open = visitor.tell("init") == CUDA_SUCCESS;
      visitor.kill();
      return is_open;
    }));
  }
  Page& page() { return *page_; }

 private:
  std::optional<Page> page_;
};

struct Given {
  const char* name;
  std::vector<std::string> what;
  std::vector<std::string> first = {};  ///< that has ended, and the spare has it
};

class SpareRedoOf : public SpareRedo, public testing::WithParamInterface<Given> {};

TEST_P(SpareRedoOf, IsDoneAgainInTheNextInstance) {
  const auto program = start_protected();
  give_first(*program, GetParam().first);
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, GetParam().what), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_SUCCESS) << page().reason();
  EXPECT_EQ(program->ask("redo digest").value, right_after(GetParam().what, GetParam().first));
  EXPECT_EQ(page()->flips.load(), 1U);
  EXPECT_EQ(page().active_domain(), "b");
  EXPECT_GE(page()->redone.load(), 1U);
  // And it goes on, protected by the next spare.
  EXPECT_TRUE(page().is(SpareState::Protected)) << page().reason();
  EXPECT_EQ(program->tell("redo give knead"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("redo wait"), CUDA_SUCCESS);
}

const std::vector<Given> may_be_done_again{
    {"ATornLaunch", {"slowly"}},
    {"AllThatCameAfter", {"slowly", "weave", "copy", "download"}},
    {"AFill", {"slowly", "fill"}},
    {"WhatIsInPlaceOnceItsInputIsMadeAnew", {"slowly", "weave", "knead"}},
    {"WhatComesFromTheHost", {"slowly", "upload", "weave"}},
    {"WhatTheHostHadAtThatMoment", {"slowly", "upload-of-the-moment"}},
    {"TwoStreamsInTheirOrder", {"slowly", "weave", "change-stream", "copy", "event"}},
    {"AGraph", {"slowly", "replay"}, {"graph:weave+copy+fill+event+download"}},
    {"AGraphMoreThanOnce", {"slowly", "replay", "replay", "knead"}, {"graph:weave+copy"}},
    {"AGraphAsItWasWhenItWasLaunched", {"slowly", "replay", "update:knead"}, {"graph:weave"}},
    {"AGraphAsItHasBecome", {"slowly", "update:weave", "replay"}, {"graph:knead"}},
    {"AGraphThatIsGone", {"slowly", "replay", "end-graph"}, {"graph:weave"}},
};
INSTANTIATE_TEST_SUITE_P(Work, SpareRedoOf, testing::ValuesIn(may_be_done_again),
                         [](const auto& each) { return each.param.name; });

/// It waits for nothing, so nobody knows that the work has ended.
TEST_F(SpareRedo, WhatHadEndedUnseenIsDoneAgain) {
  const auto program = start_protected(without_marks);
  ASSERT_EQ(give(*program, {"weave", "download"}), CUDA_SUCCESS);
  end_domain("a");
  EXPECT_EQ(program->ask("redo digest").value, right_after({"weave", "download"}));
  EXPECT_EQ(page()->flips.load(), 1U) << page().reason();
  EXPECT_EQ(page()->redone.load(), 2U);
}

/// By its marks.
TEST_F(SpareRedo, WhatTheGpuSaysHasEndedIsNotDoneAgain) {
  const auto program = start_protected({{"FIREBREAK_SPARE_REDO", "1"}});
  ASSERT_EQ(give(*program, {"knead", "download"}), CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return program->tell("redo query") == CUDA_SUCCESS; }));
  end_domain("a");
  EXPECT_EQ(program->ask("redo digest").value, right_after({"knead", "download"}));
  EXPECT_EQ(page()->flips.load(), 1U) << page().reason();
  EXPECT_EQ(page()->redone.load(), 0U);
}

/// What is behind a mark that is not there yet needs no proof: it runs once.
TEST_F(SpareRedo, WhatHasNotBegunIsGivenForTheFirstTime) {
  const auto program = start_protected({{"FIREBREAK_SPARE_REDO", "1"}});
  const std::vector<std::string> what{"slowly", "knead", "gather", "over", "download"};
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, what), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_SUCCESS) << page().reason();
  EXPECT_EQ(program->ask("redo digest").value, right_after(what));
  EXPECT_EQ(page()->redone.load(), 6U);
}

/// By its marks. The upload would bring what the host's memory has since.
TEST_F(SpareRedo, WhatHasEndedMayHaveOverwrittenWhatIsReadAgain) {
  const auto program = start_protected({{"FIREBREAK_SPARE_REDO", "1"}});
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, {"slowly", "other-stream", "upload", "download-over"}), CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return program->tell("redo query upload") == CUDA_SUCCESS; }));
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page()->flips.load(), 0U);
  EXPECT_THAT(page().reason(), HasSubstr("a copy to the host that has ended: it may write what operation"));
}

struct Refused {
  const char* name;
  std::vector<std::string> what;
  const char* why;
  std::vector<std::string> first = {};
};

class SpareRedoRefused : public SpareRedo, public testing::WithParamInterface<Refused> {};

TEST_P(SpareRedoRefused, GetsTheErrorAndTheReason) {
  const auto program = start_protected(without_marks);
  give_first(*program, GetParam().first);
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, GetParam().what), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page()->flips.load(), 0U);
  EXPECT_EQ(page()->state.load(), SpareState::Lost);
  EXPECT_THAT(page().reason(), HasSubstr("its domain died with work of this process under way: "));
  EXPECT_THAT(page().reason(), HasSubstr(GetParam().why));
}

const std::vector<Refused> may_not_be_done_again{
    {"InPlace", {"slowly", "knead"}, "knead: "},
    {"AfterWhatItOverwrites", {"slowly", "over"}, "it may write what operation"},
    {"WhereMemorySays", {"slowly", "gather"}, "gather: line"},
    {"BehindItsMemory", {"slowly", "weave-beyond"}, "weave: line"},
    {"AfterWhatItOverwritesInTheHostsMemory",
     {"slowly", "upload", "download-over"},
     "a copy: it may write what operation"},
    {"ACallOfTheHost", {"slowly", "callback"}, "nothing is known"},
    {"WhatTheHostMayHaveChanged",
     {"upload", "event", "see-event", "slowly"},
     "a copy from the host's memory, which the program may have changed since"},
    {"WhatTheHostMayHaveSeen",
     {"weave", "download", "event", "see-event", "slowly"},
     "a copy to the host that the program may have seen"},
    {"WhatTheHostMayHaveChangedByTheTime",
     {"upload", "time", "see-time", "slowly"},
     "a copy from the host's memory, which the program may have changed since"},
    {"WhatItsCodeIsNoMoreThere", {"weave", "other-code", "slowly"}, "code or memory that it used"},
    {"WhatTheGpuHasElsewhere", {"slowly", "copy-of-constants"}, "variables of its code"},
    {"WhatIsNowhere", {"slowly", "upload-of-nothing"}, "it reads or writes memory of the host"},
    {"WhatItsMemoryIsNoMoreThere",
     {"slowly", "other-stream", "fill-mapped", "event", "see-event", "map-anew"},
     "code or memory that it used",
     {"map"}},
    {"MemoryOfTheHostThatIsFilled", {"slowly", "fill-of-the-host"}, "it reads or writes memory of the host"},
    {"AGraphInPlace", {"slowly", "replay"}, "knead: ", {"graph:knead"}},
    {"AGraphThatCallsTheHost", {"slowly", "replay"}, "a function of the host", {"graph:weave+callback"}},
    {"AGraphThatFillsTheHostsMemory",
     {"slowly", "replay"},
     "it reads or writes memory of the host",
     {"graph:fill-of-the-host"}},
    {"AGraphWhoseCopyTheHostMayHaveSeen",
     {"replay", "event", "see-event", "slowly"},
     "a copy to the host that the program may have seen",
     {"graph:weave+download"}},
    {"WhatIsInPlaceOnceAGraphHasChanged", {"slowly", "update:knead", "replay"}, "knead: ", {"graph:weave"}},
};
INSTANTIATE_TEST_SUITE_P(Work, SpareRedoRefused, testing::ValuesIn(may_not_be_done_again),
                         [](const auto& each) { return each.param.name; });

TEST_F(SpareRedo, ItsOwnFaultIsNotRaisedAgain) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("fault"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(page()->flips.load(), 0U);
  EXPECT_EQ(page()->state.load(), SpareState::Lost);
  EXPECT_THAT(page().reason(), HasSubstr("fault: line"));
  Client neighbour(kernel_, in_domain("b"), FIREBREAK_PLAIN_PROGRAM);
  EXPECT_EQ(neighbour.tell("init"), CUDA_SUCCESS) << "its spare's domain has clients that live";
  neighbour.kill();
}

/// It is noted nothing more of who has come to variables: it would not be moved then anyway.
TEST_F(SpareRedo, WhoHasVariablesIsToldSo) {
  const auto program = start_protected();
  EXPECT_EQ(program->tell("load_more"), CUDA_SUCCESS);
  EXPECT_EQ(program->tell("use_more"), CUDA_SUCCESS);
  ASSERT_TRUE(page().is(SpareState::Protected)) << page().reason();
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, {"slowly"}), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_THAT(page().reason(), HasSubstr("variables of its code"));
}

TEST_F(SpareRedo, WhoDoesNotWantItGetsTheError) {
  const auto program = start_protected({{"FIREBREAK_SPARE_REDO", "0"}});
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, {"slowly"}), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_THAT(page().reason(), HasSubstr("nothing is done again here"));
}

TEST_F(SpareRedo, MoreThanIsNotedIsRefused) {
  const auto program = start_protected(without_marks);
  const auto faulter = start_faulter("a");
  ASSERT_EQ(give(*program, {"slowly"}), CUDA_SUCCESS);
  ASSERT_EQ(program->tell("redo give_many 20000"), CUDA_SUCCESS);
  fault(*faulter);
  EXPECT_EQ(program->tell("redo wait"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_THAT(page().reason(), HasSubstr("more was under way than what is noted"));
}

/// Random work in one program after the other; a stranger ends its domain at a random time. Either the
/// program sees what it sees without that, or it gets the error, and the page has the reason.
TEST_F(SpareRedo, RandomWorkComesOutAsWithoutTheFaultOrIsRefused) {
  const auto wanted = std::stoul(os::environment_variable("FIREBREAK_TEST_FAULTS").value_or("12"));
  const Environment often{{"FIREBREAK_SPARE_REDO", "1"}};
  const auto model = start_plain("model");
  std::mt19937_64 random(test_seed());
  std::unique_ptr<Client> program;
  std::size_t same = 0;
  std::size_t refused = 0;
  std::uint32_t redone = 0;
  std::string reasons;
  for (std::size_t i = 0; i < wanted; ++i) {
    if (program == nullptr)
      program = i == 0 ? start_protected(often) : prepared(start_again("init_without_variables", often));
    ASSERT_TRUE(page().is(SpareState::Protected)) << page().reason();
    const std::string domain = page().active_domain();
    const std::uint32_t flips = page()->flips.load();
    const std::string command = "redo run " + std::to_string(random() % 1'000'000) + " 500";
    const Nanoseconds until_fault = Milliseconds(random() % 100);
    program->send(command);
    std::thread faulter([&] {
      std::this_thread::sleep_for(until_fault);
      end_domain(domain);
    });
    const auto answer = program->take_answer();
    faulter.join();
    if (answer.result == CUDA_SUCCESS) {
      EXPECT_EQ(answer.value, model->ask(command).value) << command << ", flips " << page()->flips.load();
      same += page()->flips.load() != flips ? 1 : 0;
      redone = page()->redone.load();
      // Where the fault came too late for it, it leaves now.
      EXPECT_EQ(program->tell("redo digest"), CUDA_SUCCESS);
      EXPECT_EQ(page()->flips.load(), flips + 1) << page().reason();
    } else {
      EXPECT_EQ(answer.result, CUDA_ERROR_MISALIGNED_ADDRESS);
      EXPECT_EQ(page()->state.load(), SpareState::Lost) << page().reason();
      EXPECT_THAT(page().reason(), HasSubstr("work of this process under way: "));
      reasons += "  " + page().reason() + "\n";
      refused += 1;
      program.reset();
      await_open(domain);
    }
  }
  RecordProperty("same", static_cast<int>(same));
  RecordProperty("refused", static_cast<int>(refused));
  std::printf("%zu moved and saw the same, %zu were refused, %u operations of the last were done again\n%s",
              same, refused, redone, reasons.c_str());
  EXPECT_GE(same + refused, 1U);
}

}  // namespace
}  // namespace firebreak::test
