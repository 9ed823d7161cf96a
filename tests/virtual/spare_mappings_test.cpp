// SPDX-License-Identifier: Apache-2.0
/// A program that manages its virtual memory by itself (cuMemAddressReserve, cuMemCreate, cuMemMap) leaves
/// its domain. Each call answers what it answers without any of this.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "tests/virtual/spare_fixture.h"

namespace firebreak::test {
namespace {

// tests/virtual/mapping_program.cpp says what the commands mean. Rights are numbers: 0, 1 (read) and 3 (read
// and write).
class SpareMappings : public Spare {
 protected:
  SpareMappings() { memory_mib_ = 512; }

  void start(const std::string& init = "init_without_variables") {
    program_ = start_with_spare(init);
    model_ = start_plain("model");
    page_.emplace(program_->pid());
    ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  }
  /// The same calls with and without us. The answer is the last one's.
  Client::Answer both(std::initializer_list<std::string> commands) {
    Client::Answer answer{};
    for (const std::string& command : commands) {
      answer = program_->ask("vmm " + command);
      const auto right = model_->ask("vmm " + command);
      EXPECT_EQ(answer.result, right.result) << command;
      EXPECT_EQ(answer.value, right.value) << command;
    }
    return answer;
  }
  void well(std::initializer_list<std::string> commands) {
    for (const std::string& command : commands) EXPECT_EQ(both({command}).result, CUDA_SUCCESS) << command;
  }
  void refused(std::initializer_list<std::string> commands, CUresult how = CUDA_ERROR_INVALID_VALUE) {
    for (const std::string& command : commands) EXPECT_EQ(both({command}).result, how) << command;
  }
  void move() {
    ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
    const std::uint32_t before = (*page_)->flips.load();
    page_->ask_to_leave();
    ASSERT_EQ((*page_)->flips.load(), before + 1) << page_->reason();
  }
  void expect_aside(const std::string& reason) {
    EXPECT_TRUE(eventually([&] { return page_->reason() == reason; })) << page_->reason();
    const std::uint32_t before = (*page_)->flips.load();
    page_->ask_to_leave();
    EXPECT_EQ((*page_)->flips.load(), before);
  }

  std::unique_ptr<Client> program_;
  std::unique_ptr<Client> model_;
  std::optional<Page> page_;
};

TEST_F(SpareMappings, GoAlongFromInstanceToInstance) {
  start();
  well({"reserve 0 64 0 0", "create 0 2 plain", "create 1 3 plain", "map 0 5 2 0", "map 0 7 3 1",
        "access 0 5 5 3", "fill 0 5 2 11", "fill 0 7 3 22"});
  for (unsigned int i = 0; i < 3; ++i) {
    move();
    well({"read 0 5", "read 0 6", "read 0 7", "read 0 9", "add 0 6", "add 0 9", "read 0 6", "read 0 9",
          "rights 0 5", "rights 0 8", "range 0 6", "range 0 8", "attributes 0 6", "attributes 0 9",
          "properties 0", "copy 0 5 0 8 1", "read 0 5", "fill 0 8 1 " + std::to_string(i)});
  }
  well({"unmap 0 5 5", "release 0", "release 1", "free 0"});
}

// As llama.cpp's pool does it: the handle is gone at once, and the pool grows at its end.
TEST_F(SpareMappings, APoolThatGrowsAtItsEndGoesAlong) {
  start();
  well({"reserve 0 16384 0 0"});
  unsigned int end = 0;
  for (unsigned int i = 0; i < 6; ++i) {
    const std::string at = "0 " + std::to_string(end);
    const std::string size = std::to_string(i + 1);
    well({"create 0 " + size + " rdma", "map " + at + " " + size + " 0", "release 0",
          "access " + at + " " + size + " 3", "fill " + at + " " + size + " " + std::to_string(i)});
    end += i + 1;
    if (i % 2 == 0) move();
    for (unsigned int block = 0; block < end; ++block) well({"read 0 " + std::to_string(block)});
  }
  well({"add 0 20", "read 0 20", "range 0 20"});
  refused({"unmap 0 0 2", "release 0"});
  well({"unmap 0 0 " + std::to_string(end), "free 0"});
}

// As PyTorch's expandable segments do it, with 1.125 times the memory of an H200 for each.
TEST_F(SpareMappings, SegmentsThatAreLargerThanTheGpuFit) {
  start();
  for (const std::string segment : {"0", "1", "2", "3", "4"}) {
    well({"reserve " + segment + " 81216 0 0", "create " + segment + " 10 plain",
          "map " + segment + " 70000 10 " + segment, "access " + segment + " 70000 10 3",
          "fill " + segment + " 70000 10 " + segment});
  }
  move();
  for (const std::string segment : {"0", "1", "2", "3", "4"}) {
    well({"read " + segment + " 70009", "unmap " + segment + " 70000 10",
          "map " + segment + " 0 10 " + segment, "access " + segment + " 0 10 3", "read " + segment + " 9"});
  }
  move();
  for (const std::string segment : {"0", "1", "2", "3", "4"}) {
    well({"read " + segment + " 9", "unmap " + segment + " 0 10", "release " + segment, "free " + segment});
  }
}

TEST_F(SpareMappings, MemoryThatIsMappedNowhereGoesAlongAndIsMappedElsewhere) {
  start();
  well({"reserve 0 64 0 0", "create 0 2 plain", "map 0 1 2 0", "access 0 1 2 3", "fill 0 1 2 33",
        "unmap 0 1 2"});
  move();
  refused({"rights 0 1", "access 0 1 2 3", "unmap 0 1 2"});
  well({"reserve 1 8 0 0", "map 1 4 2 0", "access 1 4 2 3", "read 1 5", "add 1 4", "unmap 1 4 2"});
  move();
  well({"map 0 1 2 0", "access 0 1 2 3", "read 0 1", "read 0 2"});
  EXPECT_EQ(both({"range 0 2"}).value % 1000, 2U);
}

TEST_F(SpareMappings, OneMemoryAtSeveralAddressesIsOne) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 plain", "map 0 1 1 0", "map 0 9 1 0", "access 0 1 1 3",
        "access 0 9 1 3"});
  move();
  well({"fill 0 1 1 44", "read 0 9", "unmap 0 1 1", "read 0 9"});
  move();
  well({"map 0 2 1 0", "access 0 2 1 3", "add 0 2", "read 0 9", "read 0 2"});
}

TEST_F(SpareMappings, AMappingKeepsMemoryWhoseHandleIsReleased) {
  start();
  well({"reserve 0 64 0 0", "create 0 2 plain", "map 0 1 2 0", "access 0 1 2 3", "fill 0 1 2 55",
        "release 0"});
  refused({"release 0"});
  for (int i = 0; i < 2; ++i) {
    move();
    EXPECT_EQ(both({"retain 1 0 2 0"}).value, 1U) << "it has the same handle as ever";
    well({"read 0 2", "properties 1", "release 1"});
    refused({"release 1"});
  }
  well({"map 0 9 2 0", "unmap 0 9 2"});  // nobody knows why, but an H200 does that
  well({"unmap 0 1 2"});
  refused({"retain 1 0 2 0", "map 0 1 2 0", "properties 0"});
}

TEST_F(SpareMappings, EachReferenceIsReleasedOnce) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 plain", "map 0 1 1 0", "access 0 1 1 3", "fill 0 1 1 66",
        "retain 1 0 1 0", "retain 2 0 1 0", "unmap 0 1 1", "release 0"});
  move();
  well({"map 0 4 1 1", "access 0 4 1 3", "read 0 4", "unmap 0 4 1", "release 1"});
  move();
  well({"map 0 4 1 2", "access 0 4 1 3", "read 0 4", "release 2", "unmap 0 4 1"});
  refused({"release 2", "map 0 4 1 2"});
}

// Each instance counts its handles anew: one of them has the number of another memory of before.
TEST_F(SpareMappings, HandlesOfOneInstanceMeanNothingElseInTheNext) {
  start();
  well({"reserve 0 64 0 0"});
  const auto with_each = [&](const std::string& before, const std::string& after) {
    for (int memory = 2; memory < 42; ++memory) well({before + std::to_string(memory) + after});
  };
  for (int i = 0; i < 30; ++i) well({"create 1 1 plain", "release 1"});
  well({"create 0 1 plain", "map 0 1 1 0", "access 0 1 1 3", "fill 0 1 1 5", "unmap 0 1 1"});
  for (int i = 0; i < 2; ++i) {
    move();
    with_each("create ", " 1 plain");
    well({"map 0 1 1 0", "access 0 1 1 3", "read 0 1", "unmap 0 1 1"});
    with_each("release ", "");
  }
  well({"release 0"});
}

TEST_F(SpareMappings, RightsAreTheSameInTheNextInstance) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 plain", "create 1 1 plain", "create 2 1 plain", "map 0 1 1 0",
        "map 0 2 1 1", "map 0 3 1 2", "access 0 1 2 3", "fill 0 1 2 5", "access 0 2 1 1"});
  const auto look = [&] {
    for (const std::string at : {"1", "2", "3"})
      both({"rights 0 " + at, "read 0 " + at, "range 0 " + at, "attributes 0 " + at});
  };
  look();
  move();
  look();
  EXPECT_EQ(both({"rights 0 2"}).value, 1U);
  EXPECT_EQ(both({"rights 0 3"}).value, 0U);
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();  // the spare has it as it is now
  well({"access 0 1 1 0", "access 0 2 2 3", "fill 0 3 1 9"});
  look();
  move();
  look();
  EXPECT_EQ(both({"rights 0 1"}).value, 0U);
  EXPECT_EQ(both({"rights 0 2"}).value, 3U);
}

TEST_F(SpareMappings, MisuseIsRefusedAsEver) {
  start();
  well({"reserve 0 64 0 0", "reserve 1 64 0 0", "create 0 2 plain", "create 1 1 plain", "map 0 5 2 0",
        "access 0 5 2 3", "fill 0 5 2 7"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(both({"create_nothing"}).value, 12U);
    EXPECT_EQ(both({"retain_of_allocation"}).value, 5U);
    refused({"map 0 5 2 0",     "map 0 6 2 0",     "map 0 4 2 0",    "map 0 9 0 0",    "unmap 0 5 1",
             "unmap 0 6 1",     "unmap 0 5 0",     "access 0 5 1 3", "access 0 6 1 3", "access 0 5 3 3",
             "access 0 9 1 3",  "access 0 5 2 2",  "rights 0 9",     "retain 9 0 9 0", "free 0",
             "free_part 0 0 8", "free_part 0 5 2", "release 9",      "map 0 9 1 9",    "properties 9",
             "access 2 0 1 3",  "map 2 0 1 1",     "unmap 2 0 1"});
    refused({"map 0 9 1 0", "map 0 9 1 1 1", "map 0 9 2 1"}, CUDA_ERROR_NOT_SUPPORTED);  // not as a whole
    well({"read 0 6"});
    move();
  }
  well({"free 1", "unmap 0 5 2", "free 0"});
  refused({"free 0", "map 0 5 2 0", "map 1 5 2 0", "access 0 5 2 3"});
}

TEST_F(SpareMappings, ReservationsComeAndGo) {
  start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(both({"reserve 0 3 64 0"}).value, 1U) << "aligned";
    EXPECT_EQ(both({"reserve 1 70000 1024 0"}).value, 1U);
    well({"reserve 2 5 0 35184372088832", "create 0 1 plain", "map 1 69999 1 0", "access 1 69999 1 3",
          "fill 1 69999 1 8"});
    move();
    well({"read 1 69999", "unmap 1 69999 1", "release 0", "free 2", "free 0", "free 1"});
  }
}

TEST_F(SpareMappings, WhatIsGivenBackGoesEverywhere) {
  start();
  well({"reserve 0 1024 0 0"});
  for (int i = 0; i < 8; ++i) {  // 160 MiB each, of 512
    well({"create 0 80 plain", "map 0 1 80 0", "access 0 1 80 3", "fill 0 1 80 6"});
    move();
    well({"read 0 80", "unmap 0 1 80", "release 0"});
  }
}

TEST_F(SpareMappings, WhatWasFreedInTheOrderOfAStreamMakesRoom) {
  start();
  const auto create = [&] { return program_->tell("vmm create 0 150 plain"); };  // of 256 blocks
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(program_->tell("vmm use_in_order 150"), CUDA_SUCCESS);
    EXPECT_EQ(create(), CUDA_SUCCESS);
    EXPECT_EQ(program_->tell("vmm release 0"), CUDA_SUCCESS);
  }
}

TEST_F(SpareMappings, GraphsUseThem) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 plain", "map 0 1 1 0", "access 0 1 1 3", "fill 0 1 1 1",
        "capture 0 1 77"});
  move();
  well({"read 0 1", "launch", "read 0 1", "fill 0 1 1 2"});
  move();
  well({"launch", "read 0 1"});
}

TEST_F(SpareMappings, WhoseDomainDiesWhileNothingIsUnderWayKeepsThem) {
  start();
  well({"reserve 0 64 0 0", "create 0 2 plain", "create 1 1 plain", "map 0 5 2 0", "access 0 5 2 3",
        "fill 0 5 2 9"});
  ASSERT_TRUE(eventually([&] { return (*page_)->state.load() == SpareState::Protected; }));
  // It has waited for its work, and the spare for what is new, once it has moved and come back.
  move();
  move();
  ASSERT_TRUE(page_->is(SpareState::Protected)) << page_->reason();
  end_domain(page_->active_domain());
  const std::uint32_t before = (*page_)->flips.load();
  well({"read 0 5", "read 0 6", "rights 0 5", "map 0 9 1 1", "access 0 9 1 3", "fill 0 9 1 3", "read 0 9"});
  EXPECT_EQ((*page_)->flips.load(), before + 1);
  move();
  well({"read 0 5", "read 0 9", "unmap 0 5 2", "unmap 0 9 1", "release 0", "release 1", "free 0"});
}

TEST_F(SpareMappings, AForkedChildIsAnsweredAsEver) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 plain", "map 0 1 1 0", "access 0 1 1 3", "fill 0 1 1 4", "in_child"});
  move();
  well({"in_child", "read 0 1", "unmap 0 1 1", "release 0"});
}

// Only the anchor is there.
TEST_F(Spare, WithoutASpareMappingsWorkAsEver) {
  start_mps("anchor");
  for (const char* const domain : {"/a", "/b"}) {
    std::filesystem::create_directory(directory() + domain);
    std::ofstream(directory() + domain + "/control") << "nobody listens";
  }
  const auto program = start_again();
  const auto model = start_plain("model");
  for (const std::string command : {"reserve 0 64 0 0",
                                    "create 0 2 plain",
                                    "create 1 1 exportable",
                                    "map 0 5 2 0",
                                    "access 0 5 2 3",
                                    "fill 0 5 2 9",
                                    "read 0 6",
                                    "release 0",
                                    "retain 2 0 5 0",
                                    "attributes 0 5",
                                    "range 0 6",
                                    "rights 0 5",
                                    "properties 1",
                                    "properties 2",
                                    "export 1",
                                    "export 2",
                                    "export_and_import 1 3",
                                    "map 0 9 1 3",
                                    "access 0 9 1 3",
                                    "unmap 0 5 2",
                                    "unmap 0 9 1",
                                    "free 0"}) {
    const auto answer = program->ask("vmm " + command);
    const auto right = model->ask("vmm " + command);
    EXPECT_EQ(answer.result, right.result) << command;
    EXPECT_EQ(answer.value, right.value) << command;
  }
}

// ---- What cannot be moved ----

TEST_F(SpareMappings, WhoExportsMemoryIsToldAndGoesOn) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 exportable", "create 1 1 plain", "properties 0", "properties 1",
        "map 0 1 1 0", "map 0 2 1 1", "access 0 1 2 3", "attributes 0 1", "attributes 0 2"});
  refused({"export 1"});
  move();  // to be able to is not to do it
  refused({"export 1", "export 9"});
  well({"properties 0", "properties 1", "attributes 0 1", "attributes 0 2", "fill 0 1 1 8"});
  EXPECT_EQ(both({"export 0"}).value, 1U) << "of memory that this instance has imported itself, too";
  expect_aside("it shares memory or events with other processes");
  well({"export_and_import 0 5", "map 0 9 1 5", "access 0 9 1 3", "read 0 9", "unmap 0 9 1", "release 5",
        "read 0 1"});
}

TEST_F(SpareMappings, WhoImportsMemoryIsToldAndGoesOn) {
  start();
  move();
  well({"reserve 0 64 0 0", "import 1", "map 0 2 1 1", "access 0 2 1 3", "fill 0 2 1 6", "read 0 2",
        "properties 1"});
  expect_aside("it shares memory or events with other processes");
  well({"retain 3 0 2 1", "release 1", "release 3", "read 0 2", "unmap 0 2 1"});
  refused({"release 1", "map 0 2 1 1"});
}

struct Reason {
  const char* kind;
  const char* reason;
};

class SpareMappingsOfAKind : public SpareMappings, public testing::WithParamInterface<Reason> {};

TEST_P(SpareMappingsOfAKind, IsToldAndGoesOn) {
  start();
  move();
  well({"reserve 0 64 0 0", std::string("create 0 2 ") + GetParam().kind, "map 0 1 2 0", "access 0 1 2 3",
        "fill 0 1 2 7"});
  expect_aside(GetParam().reason);
  well({"create 1 1 plain", "map 0 9 1 1", "access 0 9 1 3", "copy 0 9 0 1 1", "read 0 9", "retain 3 0 2 0",
        "release 3", "release 0", "read 0 2", "attributes 0 1", "unmap 0 1 2", "unmap 0 9 1", "free 0"});
}

INSTANTIATE_TEST_SUITE_P(Kinds, SpareMappingsOfAKind,
                         testing::Values(Reason{"compressible", "it creates compressible memory"},
                                         Reason{"special",
                                                "it creates memory for a special use (allocFlags.usage)"}),
                         [](const auto& each) { return std::string(each.param.kind); });

// Nobody has it then.
TEST_F(SpareMappings, WhatTheDriverRefusesPutsNobodyAside) {
  start();
  well({"reserve 0 64 0 0", "create 0 1 plain"});
  both({"create 1 1 host", "create 1 1 elsewhere", "create 1 1 fabric", "multicast", "access 0 0 1 3 1"});
  move();
}

TEST_F(SpareMappings, WhoReservesMoreThanTheWindowIsToldAndGoesOn) {
  start();
  well({"reserve 0 3145728 0 0"});  // 6 TiB
  expect_aside("it reserves more addresses than all instances have in common");
  well({"create 0 1 plain", "map 0 1 1 0", "access 0 1 1 3", "fill 0 1 1 7", "read 0 1", "attributes 0 1",
        "retain 1 0 1 0", "release 0", "release 1", "unmap 0 1 1", "free 0"});
}

}  // namespace
}  // namespace firebreak::test
