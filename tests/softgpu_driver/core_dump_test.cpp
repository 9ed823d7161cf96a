// SPDX-License-Identifier: Apache-2.0
/// CUDA's core dump mode holds a domain: who stands still, how long, and what ends it. With real processes.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdint>
#include <ostream>
#include <string>

#include "tests/softgpu_driver/core_dump_reader.h"
#include "tests/softgpu_driver/core_dumps.h"

namespace firebreak::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CoreDumps, AnIdleInnocentWhoseDumpNobodyReadsHoldsTheDomain) {
  start_mps();
  const auto faulter = start("faulter");
  const auto innocent = start("innocent");
  const auto unread = start_unread("unread");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  faulter->send("sync");
  ASSERT_TRUE(is_complete("faulter"));
  ASSERT_TRUE(is_complete("innocent"));

  // Whoever has dumped works on; who has not is asked nothing but its GPU work.
  expect_works(*innocent);
  EXPECT_EQ(innocent->ask("read 0").value, 1u);
  EXPECT_EQ(unread->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(unread->tell("free_mib"), CUDA_SUCCESS);
  let_the_server_look();
  expect_works(*innocent);
  ASSERT_EQ(log().size(), 1u);
  EXPECT_THAT(log()[0].text, HasSubstr(": 13,"));

  EXPECT_EQ(faulter->take_answer().result, CUDA_SUCCESS) << "its dump is complete, and the domain held on";

  const std::int64_t read_from_ns = softgpu::now_ns();
  drain("unread");
  EXPECT_TRUE(eventually([&] { return faulter->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
  EXPECT_EQ(innocent->tell("launch sweep"), CUDA_SUCCESS);
  EXPECT_EQ(innocent->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_TRUE(eventually([&] { return unread->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
  EXPECT_EQ(mps_command(status()), "FAULT\n");
  expect_reset_after(read_from_ns);
}

TEST_F(CoreDumps, AClientStandsStillUntilItsOwnDumpIsComplete) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const Sweeper innocent = sweep(start_unread("innocent"));
  ASSERT_EQ(faulter->tell("launch trap_now"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  EXPECT_TRUE(stands_still(innocent));
  const std::uint64_t held = sum(innocent);
  let_the_server_look();
  EXPECT_EQ(sum(innocent), held);
  drain("innocent");
  EXPECT_TRUE(goes_on(innocent));
  EXPECT_TRUE(log().empty()) << "of a trap there is no Xid 13";

  const std::int64_t read_from_ns = softgpu::now_ns();
  drain("unread");
  EXPECT_EQ(innocent.client->tell("sync"), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_TRUE(stands_still(innocent));
  expect_reset_after(read_from_ns);
}

TEST_F(CoreDumps, WhoWorksOnAfterItsDumpKeepsALateOneFromItsOwn) {
  halt_ms_ = "endless";
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto late = start("late");
  const auto worker = start("worker");
  ASSERT_EQ(::kill(late->pid(), SIGSTOP), 0);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  ASSERT_TRUE(is_complete("worker"));
  expect_works(*worker);
  ASSERT_EQ(::kill(late->pid(), SIGCONT), 0);
  EXPECT_EQ(late->tell("free_mib"), CUDA_SUCCESS);
  let_the_server_look();
  EXPECT_EQ(errors_of("late"), "");
  worker->kill();
  EXPECT_TRUE(is_complete("late"));
}

TEST_F(CoreDumps, TheFaultersOwnIsKeptByNobody) {
  halt_ms_ = "endless";
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto worker = start("worker");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(eventually([&] { return !log().empty(); }));
  ASSERT_EQ(::kill(faulter->pid(), SIGSTOP), 0);
  ASSERT_TRUE(is_complete("worker"));
  expect_works(*worker);
  ASSERT_EQ(::kill(faulter->pid(), SIGCONT), 0);
  EXPECT_TRUE(is_complete("faulter"));
}

TEST_F(CoreDumps, AfterTheDriversLimitALateOneDumpsBesideWhoWorksOn) {
  halt_ms_ = "1";
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto late = start("late");
  const auto worker = start("worker");
  ASSERT_EQ(::kill(late->pid(), SIGSTOP), 0);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("worker"));
  expect_works(*worker);
  ASSERT_EQ(::kill(late->pid(), SIGCONT), 0);
  EXPECT_TRUE(is_complete("late"));
}

TEST_F(CoreDumps, AClientThatIsNotInTheModeStandsStillUntilTheReset) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const Sweeper outside = start_sweeper();
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  EXPECT_TRUE(stands_still(outside));
  const std::uint64_t held = sum(outside);
  let_the_server_look();
  EXPECT_EQ(sum(outside), held);
  drain("unread");
  EXPECT_EQ(outside.client->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(CoreDumps, WhoEntersTheModeByCallsDumpsAndGoesOn) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto by_calls = start_working_client();
  EXPECT_EQ(by_calls->tell("core_dumps " + path("by-calls")), CUDA_SUCCESS);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  EXPECT_TRUE(eventually([&] { return dump_size("by-calls") == dump_bytes; }));
  let_the_server_look();
  expect_works(*by_calls);
  drain("unread");
  EXPECT_TRUE(eventually([&] { return by_calls->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
}

TEST_F(CoreDumps, WhoIsInTheModeByItsEnvironmentStaysAsItIs) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  EXPECT_EQ(faulter->tell("core_dumps " + path("another")), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  EXPECT_EQ(dump_size("faulter"), dump_bytes);
  EXPECT_EQ(dump_size("another"), 0U);
  drain("unread");
}

TEST_F(CoreDumps, BeforeInitTheCallsEndTheProcess) {
  const auto client = start_client();
  client->send("core_dumps " + path("dump"));
  const auto end = client->wait_for_end();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGSEGV);
}

TEST_F(CoreDumps, OfOthersHoldADomainWhoseFaulterIsNotInTheMode) {
  start_mps();
  const auto faulter = start_working_client();
  const auto unread = start_unread("unread");
  const auto innocent = start("innocent");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("innocent"));
  let_the_server_look();
  expect_works(*innocent);
  const std::int64_t read_from_ns = softgpu::now_ns();
  drain("unread");
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  expect_reset_after(read_from_ns);
}

TEST_F(CoreDumps, TheFaultersEndResetsTheDomainAtOnce) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto innocent = start("innocent");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  ASSERT_TRUE(is_complete("innocent"));
  expect_works(*innocent);
  const std::int64_t killed_ns = softgpu::now_ns();
  faulter->kill();
  // It comes before the reset, or is told of it.
  EXPECT_THAT(innocent->tell("launch sweep"), testing::AnyOf(CUDA_SUCCESS, CUDA_ERROR_MISALIGNED_ADDRESS));
  EXPECT_EQ(innocent->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_TRUE(eventually([&] { return unread->tell("free_mib") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
  expect_reset_after(killed_ns);
}

TEST_F(CoreDumps, TheDumpOfAnInnocentThatHasEndedCountsNoLonger) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  let_the_server_look();
  const std::int64_t killed_ns = softgpu::now_ns();
  unread->kill();
  EXPECT_TRUE(eventually([&] { return faulter->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
  expect_reset_after(killed_ns);
}

TEST_F(CoreDumps, WithoutMpsADumpComesBeforeTheFault) {
  const auto client = start_unread("client");
  ASSERT_EQ(client->tell("launch misaligned"), CUDA_SUCCESS);
  client->send("sync");
  EXPECT_TRUE(eventually([&] { return errors_of("client").find("Detected") != std::string::npos; }));
  const std::int64_t read_from_ns = softgpu::now_ns();
  EXPECT_TRUE(CoreDumpReader(drain("client")).valid());
  EXPECT_EQ(client->take_answer().result, CUDA_ERROR_MISALIGNED_ADDRESS);
  expect_reset_after(read_from_ns);
}

TEST_F(CoreDumps, AStoreIntoNowhereIsNotHeld) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  ASSERT_EQ(faulter->tell("launch unmapped_store"), CUDA_SUCCESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(eventually([&] { return unread->tell("sync") == CUDA_ERROR_ILLEGAL_ADDRESS; }));
  EXPECT_THAT(errors_of("faulter"), HasSubstr("after the warp has exited"));
  EXPECT_EQ(errors_of("unread"), "");
}

TEST_F(CoreDumps, AStoreIntoNowhereResetsAHeldDomain) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto innocent = start("innocent");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("innocent"));
  ASSERT_EQ(innocent->tell("launch unmapped_store"), CUDA_SUCCESS);
  EXPECT_EQ(innocent->tell("sync"), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CoreDumps, AnUnmappedLoadAndABadProgramCounterAreHeld) {
  for (const std::string kernel : {"load", "jump"}) {
    start_mps(kernel);
    const auto faulter = start(kernel + "_faulter");
    const auto unread = start_unread(kernel + "_unread");
    ASSERT_EQ(faulter->tell("launch " + kernel + " " + std::to_string(0x7000dead0000)), CUDA_SUCCESS);
    ASSERT_TRUE(is_complete(kernel + "_faulter"));
    const std::uint32_t number = kernel == "load" ? 14 : 4;
    const CoreDumpReader dump(drain(kernel + "_unread"));
    EXPECT_EQ(dump.word(".cudbg.smtbl.dev0", 0, 8), number);
    EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

struct BadPointer {
  std::string kernel;
  std::string end;  ///< of the client beside it
};
void PrintTo(const BadPointer& pointer, std::ostream* out) { *out << pointer.kernel << ", " << pointer.end; }
class BadPointers : public CoreDumps, public ::testing::WithParamInterface<BadPointer> {};

INSTANTIATE_TEST_SUITE_P(ByKernelAndEnd, BadPointers,
                         ::testing::Values(BadPointer{"load", "end_context"}, BadPointer{"jump", "exit"},
                                           BadPointer{"load", "kill"}),
                         [](const auto& test) { return test.param.kernel + "_" + test.param.end; });

TEST_P(BadPointers, ComeUpAgainAndHaltEverybodyWhenTheNextClientEnds) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto leaver = start("leaver");
  const Sweeper innocent = sweep(start("innocent"));
  const std::string nowhere = std::to_string(0x7000dead0000);
  ASSERT_EQ(faulter->tell("launch " + GetParam().kernel + " " + nowhere), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("leaver"));
  ASSERT_TRUE(is_complete("innocent"));
  ASSERT_TRUE(goes_on(innocent));
  ASSERT_TRUE(log().empty());
  const std::string its = "pid=" + std::to_string(leaver->pid()) + ",";
  const std::string& end = GetParam().end;
  const pid_t server = mps_server();
  if (end != "kill") ::kill(server, SIGSTOP);  // so it is the client that tells, before its end shows
  end == "kill" ? leaver->kill() : leaver->send(end);
  EXPECT_TRUE(eventually([&] { return !log().empty(); }));
  ::kill(server, SIGCONT);
  ASSERT_EQ(log().size(), 1u);
  EXPECT_THAT(log()[0].text, HasSubstr(": 31, " + its));
  EXPECT_TRUE(eventually([&] {
    const std::uint64_t before = sum(innocent);
    let_the_server_look();
    return sum(innocent) == before;
  }));
  EXPECT_EQ(log().size(), 1u);
  drain("unread");
  EXPECT_EQ(innocent.client->tell("sync"), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(CoreDumps, AnotherExceptionDoesNotComeUpAgain) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto leaver = start("leaver");
  const auto killed = start("killed");
  const auto innocent = start("innocent");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  for (const std::string name : {"leaver", "killed", "innocent"}) ASSERT_TRUE(is_complete(name));
  EXPECT_EQ(leaver->tell("end_context"), CUDA_SUCCESS);
  killed->kill();
  let_the_server_look();
  expect_works(*innocent);
  EXPECT_EQ(log().size(), 1u);
}

// As on an H200, results/h200/instance-again.json.
TEST_F(CoreDumps, WhoHasGivenItsContextBackBeforeTheFallBeginsAgainAndNobodyElse) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto leaver = start("leaver");
  const auto innocent = start("innocent");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  for (const std::string name : {"leaver", "innocent"}) ASSERT_TRUE(is_complete(name));
  EXPECT_EQ(leaver->tell("end_context"), CUDA_SUCCESS);
  drain("unread");
  EXPECT_TRUE(eventually([&] { return innocent->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
  EXPECT_EQ(innocent->tell("end_context"), CUDA_SUCCESS);
  faulter->kill();
  unread->kill();
  EXPECT_TRUE(eventually([&] { return leaver->tell("init") == CUDA_SUCCESS; }));
  EXPECT_EQ(leaver->tell("launch add_one"), CUDA_SUCCESS);
  EXPECT_EQ(leaver->tell("sync"), CUDA_SUCCESS);
  EXPECT_EQ(innocent->tell("init"), CUDA_ERROR_MISALIGNED_ADDRESS) << "for good";
  // It is a client as any other.
  const auto rogue = start("rogue");
  ASSERT_EQ(rogue->tell("launch misaligned"), CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return leaver->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
}

TEST_F(CoreDumps, ANewcomerHangsUntilTheReset) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  Client newcomer(kernel_, mode(path("newcomer")));
  newcomer.send("init");
  const auto primary = start_client();
  primary->send("primary");
  let_the_server_look();
  drain("unread");
  EXPECT_EQ(newcomer.take_answer().result, CUDA_ERROR_MPS_SERVER_NOT_READY);
  EXPECT_EQ(primary->take_answer().result, CUDA_ERROR_MPS_SERVER_NOT_READY);
  EXPECT_FALSE(kernel_.read_file(path("newcomer"))) << "it has nothing to dump";

  // It is not among those whom the fault has hit.
  EXPECT_TRUE(eventually([&] { return unread->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
  faulter->kill();
  unread->kill();
  EXPECT_TRUE(eventually([&] { return start_client()->tell("init") == CUDA_SUCCESS; }));
}

TEST_F(CoreDumps, ADumpThatCannotBeOpenedIsAnErrorAndCounts) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto nowhere = working(mode(path("missing/dump")), "nowhere");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  EXPECT_TRUE(eventually([&] { return nowhere->tell("free_mib") == 10; }));
  expect_works(*nowhere);
  drain("unread");
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(CoreDumps, ASecondExceptionWaitsForTheReset) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  const auto second = start("second");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("faulter"));
  ASSERT_TRUE(is_complete("second"));
  ASSERT_EQ(second->tell("launch trap_now"), CUDA_SUCCESS);
  second->send("sync");
  let_the_server_look();
  EXPECT_EQ(log().size(), 1u);
  const std::int64_t read_from_ns = softgpu::now_ns();
  drain("unread");
  EXPECT_EQ(second->take_answer().result, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(faulter->tell("sync"), CUDA_ERROR_MISALIGNED_ADDRESS);
  expect_reset_after(read_from_ns);
  EXPECT_THAT(errors_of("second"), Not(HasSubstr("Detected")));
}

TEST_F(CoreDumps, AProcessAbortsAfterItsDumpUnlessItIsToldNotTo) {
  start_mps();
  const auto faulter = start("faulter", "skip_global_memory");
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  const auto status = faulter->wait_for_end();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGABRT);
  EXPECT_EQ(kernel_.read_file(path("faulter")).value_or("").size(), dump_bytes);
}

class CoreDumpOf : public CoreDumps, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Kernels, CoreDumpOf, ::testing::Values("misaligned", "trap_now"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(CoreDumpOf, ShowsTheFaulterByItsLanesOrItsBrokenWarp) {
  start_mps();
  const auto faulter = start("faulter");
  const auto idle = start("idle");
  const Sweeper running = sweep(start("running"));
  const bool is_trap = std::string(GetParam()) == "trap_now";
  ASSERT_EQ(faulter->tell(std::string("launch ") + GetParam()), CUDA_SUCCESS);
  EXPECT_NE(faulter->tell("sync"), CUDA_SUCCESS);
  for (const std::string name : {"faulter", "idle", "running"}) {
    const std::string bytes = kernel_.read_file(path(name)).value_or("");
    const CoreDumpReader dump(bytes);
    ASSERT_TRUE(dump.valid()) << name;
    EXPECT_EQ(bytes.size(), dump_bytes);
    ASSERT_EQ(dump.entries(".cudbg.smtbl.dev0"), 132u);
    EXPECT_EQ(dump.word(".cudbg.smtbl.dev0", 0, 8), is_trap ? 0u : 6u) << name;
    EXPECT_EQ(dump.word(".cudbg.smtbl.dev0", 131, 0), 131u);
    EXPECT_EQ(dump.entries(".cudbg.gridtbl.dev0"), name == "idle" ? 0u : 1u) << name;
    EXPECT_EQ(dump.has(".cudbg.lntbl.dev0.sm0.cta0.wp0"), name != "idle");
    if (name == "idle") continue;
    const bool faulted = name == "faulter";
    EXPECT_EQ(dump.word(".cudbg.wptbl.dev0.sm0.cta0", 0, 20), faulted && is_trap ? 1u : 0u) << name;
    EXPECT_EQ(dump.word(".cudbg.lntbl.dev0.sm0.cta0.wp0", 0, 32), faulted && !is_trap ? 6u : 0u) << name;
  }
}

TEST_P(CoreDumpOf, IsToldByAllAndTheExceptionByTheFaulterUnlessItIsATrap) {
  start_mps();
  const auto faulter = start("faulter");
  const auto innocent = start("innocent");
  const bool is_trap = std::string(GetParam()) == "trap_now";
  ASSERT_EQ(faulter->tell(std::string("launch ") + GetParam()), CUDA_SUCCESS);
  EXPECT_NE(faulter->tell("sync"), CUDA_SUCCESS);
  for (const std::string name : {"faulter", "innocent"}) {
    const std::string errors = errors_of(name);
    EXPECT_THAT(errors, HasSubstr("coredump: Starting GPU coredump generation\n"));
    EXPECT_THAT(errors, HasSubstr("coredump: SM 132/132 has finished state collection\n"));
    EXPECT_THAT(errors, HasSubstr("coredump: Writing done\n"));
    const bool names_it = name == "faulter" && !is_trap;
    EXPECT_EQ(errors.find("Detected an exception of type CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)") !=
                  std::string::npos,
              names_it)
        << name;
    EXPECT_EQ(errors.find("Detected") != std::string::npos, names_it) << name;
  }
}

}  // namespace
}  // namespace firebreak::test
