// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/control_output.h"

#include <gmock/gmock.h>

namespace firebreak::mps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProcessIds, ReadsOneALine) {
  EXPECT_THAT(parse_process_ids("12\n 345 \r\n").value(), ElementsAre(12, 345));
}

TEST(ProcessIds, NothingIsAnEmptyList) {
  EXPECT_THAT(parse_process_ids("").value(), IsEmpty());
  EXPECT_THAT(parse_process_ids("\n \n").value(), IsEmpty());
}

TEST(ProcessIds, RefusesWhatIsNoProcessId) {
  for (const char* text : {"12x", "-3", "0", "99999999999999", "12\nhello"}) {
    const auto ids = parse_process_ids(text);
    ASSERT_FALSE(ids) << text;
    EXPECT_EQ(ids.error().code, ErrorCode::Protocol) << text;
  }
}

TEST(ProcessIds, AnUnknownServerIsNotFound) {
  EXPECT_EQ(parse_process_ids("Server 12 not found\nmore").error().code, ErrorCode::NotFound);
  EXPECT_EQ(parse_process_ids("Server 12 not found\nmore").error().message,
            "MPS answered: Server 12 not found");
}

TEST(TerminateAnswer, SilenceIsSuccess) {
  EXPECT_TRUE(parse_answer(""));
  EXPECT_TRUE(parse_answer("\n"));
}

TEST(TerminateAnswer, TellsADeadClientFromAFailure) {
  EXPECT_EQ(parse_answer("Invalid process\n").error().code, ErrorCode::NotFound);
  EXPECT_EQ(parse_answer("Error: terminate failed").error().code, ErrorCode::Device);
}

}  // namespace
}  // namespace firebreak::mps
