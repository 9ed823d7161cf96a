// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::nri {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using namespace std::string_literals;

// Written by hand, after PROTOCOL.md of ttrpc and pkg/net/multiplex of NRI.
const std::string one_bytes =
    "\0\0\0\x01"
    "\0\0\0\x0d"
    "\0\0\0\x03"
    "\0\0\0\x05"
    "\x02"
    "\0"
    "abc"s;
const TtrpcMessage one{plugin_connection, 5, 2, 0, "abc"};
const TtrpcMessage other{runtime_connection, 7, 1, 0, ""};

std::vector<TtrpcMessage> read_all(FrameReader& reader, const std::string& bytes) {
  auto read = reader.read(bytes);
  return read ? *read : std::vector<TtrpcMessage>();
}

std::string header(std::uint8_t high_byte_of_size) {
  return "\0\0\0\x01"s + std::string(1, static_cast<char>(high_byte_of_size)) + "\0\0\x0a"s;
}

TEST(Frames, AreTheBytesThatTheProtocolsSay) {
  EXPECT_EQ(encode(one), one_bytes);
  FrameReader reader;
  EXPECT_THAT(read_all(reader, one_bytes), ElementsAre(one));
  EXPECT_FALSE(reader.is_in_midst());
}

TEST(Frames, ThatComeByteByByteAreWholeAtTheirEnd) {
  FrameReader reader;
  for (int times = 0; times < 2; ++times) {
    for (std::size_t i = 0; i + 1 < one_bytes.size(); ++i) {
      EXPECT_THAT(read_all(reader, one_bytes.substr(i, 1)), IsEmpty());
      EXPECT_TRUE(reader.is_in_midst());
    }
    EXPECT_THAT(read_all(reader, one_bytes.substr(one_bytes.size() - 1)), ElementsAre(one));
    EXPECT_FALSE(reader.is_in_midst());
  }
}

TEST(Frames, OfSeveralMessagesAndConnectionsAtOnceAreAllRead) {
  FrameReader reader;
  EXPECT_THAT(read_all(reader, encode(one) + encode(other) + encode(one)), ElementsAre(one, one, other));
}

TEST(Frames, MayCutAMessageWhereTheyLike) {
  const std::string message = one_bytes.substr(8);
  FrameReader reader;
  const std::string first = "\0\0\0\x01\0\0\0\x04"s + message.substr(0, 4);
  const std::string between = encode(other);
  const std::string second = "\0\0\0\x01\0\0\0\x09"s + message.substr(4);
  EXPECT_THAT(read_all(reader, first + between), ElementsAre(other));
  EXPECT_TRUE(reader.is_in_midst());
  EXPECT_THAT(read_all(reader, second), ElementsAre(one));
}

TEST(Frames, OfAConnectionThatWeDoNotHaveAreSkipped) {
  TtrpcMessage strange = one;
  strange.connection = 9;
  FrameReader reader;
  EXPECT_THAT(read_all(reader, encode(strange) + encode(one)), ElementsAre(one));
  EXPECT_FALSE(reader.is_in_midst());
}

TEST(Frames, ThatAreTooLargeAreRefusedAtTheirHeaderAndSoIsTheRest) {
  FrameReader reader;
  EXPECT_EQ(reader.read(header(0x7f)).error().code, ErrorCode::Protocol);
  EXPECT_EQ(reader.read(one_bytes).error().code, ErrorCode::Protocol);
}

TEST(Frames, WithAMessageThatIsTooLargeAreRefused) {
  FrameReader reader;
  const std::string within =
      "\0\0\0\x01"
      "\0\0\0\x0a"
      "\0\x40\0\x01"
      "\0\0\0\x05"
      "\x02"
      "\0"s;
  EXPECT_EQ(reader.read(within).error().code, ErrorCode::Protocol);
}

TEST(Frames, OfTheLargestSizeAreTaken) {
  TtrpcMessage large = one;
  large.data.assign(most_data_bytes, 'x');
  FrameReader reader;
  EXPECT_THAT(read_all(reader, encode(large)), ElementsAre(large));
}

}  // namespace
}  // namespace firebreak::nri
