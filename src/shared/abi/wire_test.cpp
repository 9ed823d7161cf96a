// SPDX-License-Identifier: Apache-2.0
#include "shared/abi/wire.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::abi {
namespace {

template <class T>
T round_trip(const T& value) {
  auto decoded = decode(encode(value));
  EXPECT_TRUE(decoded.has_value()) << (decoded ? "" : decoded.error().message);
  return std::get<T>(*decoded);
}

TEST(Wire, EveryFieldOfAnAllocationSurvives) {
  const Allocation got = round_trip(Allocation{"latents", 0x500000200000u, 4u << 20});
  EXPECT_EQ(got.name, "latents");
  EXPECT_EQ(got.address, 0x500000200000u);
  EXPECT_EQ(got.size_bytes, 4u << 20);
  EXPECT_FALSE(got.is_shared);
}

TEST(Wire, EveryFieldOfSharedMemorySurvives) {
  const Allocation got = round_trip(Allocation{"backbone", 0x540000200000u, 2u << 20, Memory::Shared, true});
  EXPECT_EQ(got.memory, Memory::Shared);
  EXPECT_TRUE(got.is_shared);
  EXPECT_TRUE(round_trip(Share{true}).again);
  const GiveShared asked = round_trip(GiveShared{"maker", "backbone"});
  EXPECT_EQ(asked.owner, "maker");
  EXPECT_EQ(asked.name, "backbone");
  EXPECT_EQ(round_trip(Shared{"maker"}).owner, "maker");
  const Joined joined = round_trip(Joined{1, 2, 3, 4, 5, 0x540000000000u, 7});
  EXPECT_EQ(joined.shared_base, 0x540000000000u);
  EXPECT_EQ(joined.shared_bytes, 7u);
  const auto older =
      decode(R"({"type":"joined","epoch":1,"arena_base":2,"allocations":3,"agent_returns_ms":4,"member":5})");
  ASSERT_TRUE(older);
  EXPECT_EQ(std::get<Joined>(*older).shared_base, 0u) << "an agent before 0.8 has none";
}

TEST(Wire, EveryFieldOfAnEventSurvives) {
  const Event got =
      round_trip(Event{7, EventKind::Fault, "rogue", "a", 4711, "Xid", 3, 12, "one \"line\"", "1q2w3e4"});
  EXPECT_EQ(got.at_ns, 7);
  EXPECT_EQ(got.what, EventKind::Fault);
  EXPECT_EQ(got.tenant, "rogue");
  EXPECT_EQ(got.domain, "a");
  EXPECT_EQ(got.pid, 4711);
  EXPECT_EQ(got.source, "Xid");
  EXPECT_EQ(got.epoch, 3u);
  EXPECT_EQ(got.step, 12u);
  EXPECT_EQ(got.text, "one \"line\"");
}

/// Cut off it would be another number: process 5 for 5 + 2^32, 3 percent for 4294967299.
TEST(Wire, ANumberThatDoesNotFitIsNoMessage) {
  const auto refused = [](const std::string& text) { return decode(text).error().message; };
  const std::string place =
      R"({"type":"place","tenant":"x","role":"active","gpu":"","memory_mib":0,"sm_percent":)";
  EXPECT_TRUE(decode(place + "3}").has_value());
  for (const char* number : {"4294967299", "-1", "3.5", "\"3\"", "1e300", "null", "18446744073709551619"})
    EXPECT_NE(refused(place + number + "}").find("sm_percent"), std::string::npos) << number;
  for (const char* number : {"4294967301", "-5", "2147483648"}) {
    const std::string pid = std::string(R"(,"pid":)") + number + "}";
    EXPECT_NE(refused(R"({"type":"end_process","tenant":"x")" + pid).find("pid"), std::string::npos)
        << number;
    EXPECT_NE(refused(R"({"type":"output","text":"x")" + pid).find("pid"), std::string::npos) << number;
    EXPECT_NE(refused(R"({"type":"adopt","tenant":"x","role":"active","strays":"end")" + pid).find("pid"),
              std::string::npos)
        << number;
  }
  EXPECT_TRUE(decode(R"({"type":"end_process","tenant":"x","pid":2147483647})").has_value());
  EXPECT_FALSE(decode(R"({"type":"stand_down","word":4294967296})").has_value());
  EXPECT_TRUE(decode(R"({"type":"stand_down"})").has_value()) << "older programs";
}

TEST(Wire, RolesAndEnvironmentsSurvive) {
  EXPECT_EQ(round_trip(Join{"decode", Role::Standby}).role, Role::Standby);
  EXPECT_EQ(round_trip(Adopt{"rogue", Role::Active, 99, {}}).pid, 99);
  EXPECT_EQ(round_trip(Placed{{{"A", "1"}, {"B", "x=y"}}}).environment[1].second, "x=y");
}

TEST(Wire, EveryFieldOfAJoinSurvivesAndOlderProgramsHaveFewer) {
  const Join got = round_trip(Join{"llm", Role::Standby, "token", "attempt", "/mps/b"});
  EXPECT_EQ(got.tenant, "llm");
  EXPECT_EQ(got.token, "token");
  EXPECT_EQ(got.attempt, "attempt");
  EXPECT_EQ(got.pipe_directory, "/mps/b");
  EXPECT_TRUE(decode(R"({"type":"join","tenant":"x","role":"active","token":""})").has_value());
}

TEST(Wire, EveryFieldOfAPlaceSurvives) {
  const Place got = round_trip(Place{"llm", Role::Standby, "GPU-1", 25, 1024});
  EXPECT_EQ(got.tenant, "llm");
  EXPECT_EQ(got.role, Role::Standby);
  EXPECT_EQ(got.gpu, "GPU-1");
  EXPECT_EQ(got.sm_percent, 25u);
  EXPECT_EQ(got.memory_mib, 1024u);
}

TEST(Wire, WhatTheOperatorSaysOfStraysSurvives) {
  for (const auto policy : {StrayPolicy::Default, StrayPolicy::End, StrayPolicy::Report}) {
    EXPECT_EQ(round_trip(Adopt{"rogue", Role::Active, 99, policy}).strays, policy);
  }
  EXPECT_NE(decode(R"({"type":"adopt","tenant":"x","role":"active","pid":1,"strays":"shrug"})")
                .error()
                .message.find("'shrug'"),
            std::string::npos);
}

TEST(Wire, EveryFieldOfAnEndSurvives) {
  const EndProcess process = round_trip(EndProcess{"rogue", 99});
  EXPECT_EQ(process.tenant, "rogue");
  EXPECT_EQ(process.pid, 99);
  const EndTenant tenant = round_trip(EndTenant{"rogue", 250, true});
  EXPECT_EQ(tenant.tenant, "rogue");
  EXPECT_EQ(tenant.grace_ms, 250u);
  EXPECT_TRUE(tenant.force);
  const auto of_older = decode(R"({"type":"end_tenant","tenant":"rogue","grace_ms":250})");
  ASSERT_TRUE(of_older);
  EXPECT_FALSE(std::get<EndTenant>(*of_older).force);
  const Shutdown all = round_trip(Shutdown{true, 250});
  EXPECT_TRUE(all.force);
  EXPECT_EQ(all.grace_ms, 250u);
  EXPECT_EQ(round_trip(HandOver{"llm"}).tenant, "llm");
  const Rest rest = round_trip(Rest{"llm", RestLevel::WithoutMemory});
  EXPECT_EQ(rest.tenant, "llm");
  EXPECT_EQ(rest.level, RestLevel::WithoutMemory);
  EXPECT_FALSE(decode(R"({"type":"rest","tenant":"llm","level":"asleep"})"));
  EXPECT_EQ(round_trip(GpuRecovered{"0000:3b:00"}).gpu, "0000:3b:00");
  EXPECT_EQ(round_trip(Ended{"process 99: SIGTERM"}).text, "process 99: SIGTERM");
}

TEST(Wire, EveryFieldOfAFaultOnPurposeSurvives) {
  const Inject asked = round_trip(Inject{"decode", "trap", 3});
  EXPECT_EQ(asked.tenant, "decode");
  EXPECT_EQ(asked.kind, "trap");
  EXPECT_EQ(asked.commits, 3u);
  const Injected answered = round_trip(Injected{17, "no"});
  EXPECT_EQ(answered.raised_at_ns, 17);
  EXPECT_EQ(answered.refusal, "no");
}

TEST(Wire, EveryFieldOfAClientsConnectionSurvives) {
  EXPECT_EQ(round_trip(NextConnection{17}).after, 17u);
  EXPECT_EQ(round_trip(ClientConnection{18}).id, 18u);
  EXPECT_EQ(round_trip(ReleaseConnection{19}).id, 19u);
  round_trip(Listen{});
  round_trip(GiveListener{});
}

TEST(Wire, EveryFieldOfTheCoreDumpModeSurvives) {
  round_trip(GiveCoreDumpPipe{});
  EXPECT_EQ(round_trip(CoreDumpPipe{"/run/firebreak/core-dumps/1.pipe"}).path,
            "/run/firebreak/core-dumps/1.pipe");
  EXPECT_EQ(round_trip(CoreDumpMode{"it has settings of its own"}).why_not, "it has settings of its own");
}

TEST(Wire, WhatARefusalMeansSurvives) {
  const Refused got = round_trip(Refused{"a is draining", false, true});
  EXPECT_FALSE(got.used_up);
  EXPECT_TRUE(got.not_yet);
  EXPECT_FALSE(got.invalid);
  EXPECT_TRUE(round_trip(Refused{"it is shared", false, false, true}).invalid);
  const auto older = decode(R"({"type":"refused","reason":"no","used_up":true})");
  ASSERT_TRUE(older);
  EXPECT_FALSE(std::get<Refused>(*older).not_yet) << "an agent before 0.8 says nothing of it";
}

TEST(Wire, TheNumberOfARequestSurvives) {
  EXPECT_EQ(decode_letter(encode(Done{}, 7))->number, 7u);
  EXPECT_EQ(decode_letter(encode(Done{}))->number, 0u);
  EXPECT_EQ(encode(Done{}), R"({"type":"done"})") << "as programs before 0.7 write it";
  EXPECT_EQ(std::get<Done>(decode_letter(encode(Done{}))->message).pid, 0);
  EXPECT_EQ(std::get<Done>(decode_letter(encode(Done{4711}))->message).pid, 4711);
  EXPECT_EQ(decode_letter(R"({"type":"done","number":"x"})").error().code, ErrorCode::Protocol);
  EXPECT_EQ(number_in(R"({"type":"dance","number":8})"), 8u);
  for (const char* none : {R"({"type":"dance"})", R"({"number":"x"})", "[]", "{", ""})
    EXPECT_EQ(number_in(none), 0u) << none;
  EXPECT_EQ(round_trip(GiveAllocation{"state"}).name, "state");
}

TEST(Wire, AnOutputOfAnyBytesFitsAndItsLinesSurvive) {
  const Output got = round_trip(Output{4711, "one\ntwo \"2\"\t\n"});
  EXPECT_EQ(got.pid, 4711);
  EXPECT_EQ(got.text, "one\ntwo \"2\"\t\n");
  for (const char worst : {'\x01', '\xff'}) {
    EXPECT_LE(encode(Output{4711, std::string(4097, worst)}).size(), wire_bytes_max);
    round_trip(Output{4711, std::string(4097, worst)});
  }
}

TEST(Wire, WhatIsNoMessageIsRefusedWithTheReason) {
  EXPECT_EQ(decode("{").error().code, ErrorCode::Protocol);
  EXPECT_EQ(decode("[]").error().message, "a message that is not a JSON object");
  EXPECT_EQ(decode(R"({"type":"dance"})").error().message, "a message of unknown type 'dance'");
  EXPECT_NE(decode(R"({"type":"join"})").error().message.find("tenant"), std::string::npos);
  EXPECT_EQ(decode(R"({"type":"adopt","tenant":"x","role":"active","pid":"many"})").error().code,
            ErrorCode::Protocol);
  EXPECT_NE(decode(R"({"type":"join","tenant":"x","role":"boss"})").error().message.find("'boss'"),
            std::string::npos);
  EXPECT_EQ(decode(std::string(wire_bytes_max + 1, ' ')).error().message, "a message of more than 64 KiB");
}

TEST(Wire, MutatedMessagesAreDecodedOrRefused) {
  const std::uint64_t seed = test_seed();
  std::mt19937_64 random(seed);
  const std::string original = encode(Publish{"weights", 0x500000000000u, 1u << 21});
  int refused = 0;
  for (int run = 0; run < 10000; ++run) {
    std::string text = original;
    for (std::uint64_t edit = 0; edit <= random() % 3; ++edit)
      text[random() % text.size()] = static_cast<char>(random());
    if (random() % 4 == 0) text.resize(random() % text.size());
    const auto decoded = decode(text);
    if (decoded) {
      EXPECT_TRUE(decode(encode(*decoded)).has_value()) << text;
    } else {
      ++refused;
      EXPECT_FALSE(decoded.error().message.empty()) << text;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Wire, NamesAreShortAndPlain) {
  EXPECT_TRUE(check_name("llm-7b_v1.0").has_value());
  EXPECT_FALSE(check_name("").has_value());
  EXPECT_FALSE(check_name(std::string(64, 'a')).has_value());
  EXPECT_FALSE(check_name("a/b").has_value());
}

}  // namespace
}  // namespace firebreak::abi
