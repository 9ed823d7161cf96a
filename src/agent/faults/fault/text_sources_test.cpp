// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "agent/faults/fault/core_dump.h"
#include "agent/faults/fault/mps_log.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::fault {
namespace {

constexpr std::array dump_lines{
    "[00:40:46.606419] coredump: SM 124/132 has finished state collection\n",
    "[06:43:15.209195] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)\n",
    "[06:43:15.209202] coredump:   - Device: 0\n",
    "[06:43:15.209206] coredump:   - SM: 124\n",
    "[06:43:15.209208] coredump:   - Warp: 3\n",
    "[06:43:15.209210] coredump:   - PC 0x7462c3bac310\n",
    "[06:43:15.209477] coredump: Stack trace (lane masks: active 0xFFFFFFFF, valid 0xFFFFFFFF):\n",
    "[06:43:15.209486] coredump:   #0\t0x7462c3bac620\t_Z6roguePi\n",
};

TEST(CoreDumpReader, NamesTheExceptionThenTheKernel) {
  CoreDumpReader reader;
  std::vector<CoreDumpException> seen;
  for (const char* line : dump_lines) {
    if (const auto exception = reader.read(line)) seen.push_back(*exception);
  }
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].type, "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS");
  EXPECT_EQ(seen[0].device, 0u);
  EXPECT_EQ(seen[0].sm, 124u);
  EXPECT_EQ(seen[0].warp, 3u);
  EXPECT_EQ(seen[0].program_counter, 0x7462c3bac310u);
  EXPECT_EQ(seen[0].kernel, "");
  EXPECT_EQ(seen[1].kernel, "_Z6roguePi");
  const Fault fault = from_core_dump(seen[1], 77, from_ns(5));
  EXPECT_EQ(fault.kind, "WARP_MISALIGNED_ADDRESS, SM 124, warp 3, PC 0x7462c3bac310, kernel _Z6roguePi");
  EXPECT_EQ(fault.fault_class, FaultClass::Sm);
  EXPECT_EQ(fault.pid, 77);
  EXPECT_EQ(fault.source, FaultSource::CoreDump);
}

/// An H100 printed it in four processes beside the one whose kernel it was (results/h100/parking.json).
TEST(CoreDumpReader, AnExceptionOfNoWarpMayBeANeighbours) {
  CoreDumpReader reader;
  for (const char* line :
       {"[10:14:48.073] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)",
        "[10:14:48.073] coredump:   - Device: 0", "[10:14:48.073] coredump:   - SM: 124",
        "[10:14:48.073] coredump:   - PC 0x7f4bff7aec30",
        "[10:14:48.073] coredump:   #0\t0x7f4bff7aec30\tmix"})
    EXPECT_FALSE(reader.read(line)) << line;
}

/// The exception becomes nobody's where the line with its program counter does not come.
TEST(CoreDumpReader, AKernelAloneDoesNotMakeItSomebodys) {
  CoreDumpReader reader;
  for (const char* line :
       {"[10:14:48.073] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)",
        "[10:14:48.073] coredump:   - SM: 124", "[10:14:48.073] coredump:   #0\t0x7f4bff7aec30\tmix"})
    EXPECT_FALSE(reader.read(line)) << line;
}

TEST(CoreDumpReader, AWarpThatHasLeftNamesNobody) {
  CoreDumpReader reader;
  reader.read(
      "[00:40:46.611453] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14)");
  reader.read("[00:40:46.611462] coredump:   - Warp: exception was detected after the warp has exited");
  EXPECT_FALSE(reader.read("[00:40:46.611465] coredump:   - PC 0x7f31abb9f6d0"));
}

TEST(CoreDumpReader, NeedsNothingButTheLinesAboutTheException) {
  CoreDumpReader reader;
  std::vector<CoreDumpException> seen;
  int needed = 0;
  for (const char* line : dump_lines) {
    if (!is_about_exception(line)) continue;
    ++needed;
    if (const auto exception = reader.read(line)) seen.push_back(*exception);
  }
  EXPECT_EQ(needed, 6);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[1].kernel, "_Z6roguePi");
  EXPECT_FALSE(is_about_exception("- SM: 124"));
}

TEST(CoreDumpReader, LeavesOtherOutputAlone) {
  CoreDumpReader reader;
  EXPECT_FALSE(reader.read("step 5 of 9"));
  EXPECT_FALSE(reader.read("[06:43:15.209210] coredump:   - PC 0x7462c3bac310"));
  EXPECT_FALSE(
      reader.read("I saw: [06:43:15] coredump: Detected an exception of type CUDBG_EXCEPTION_X (6)"));
  for (const char* type : {"nonsense", "CUDBG_EXCEPTION_ (6)"}) {
    reader.read(std::string("[06:43:15.209195] coredump: Detected an exception of type ") + type);
    EXPECT_FALSE(reader.read("[06:43:15.209210] coredump:   - PC 0x7462c3bac310")) << type;
  }
  EXPECT_FALSE(reader.read(""));
}

TEST(MpsLog, ALineOfAFaultNamesItsClient) {
  const auto line = parse_mps_log(
      "[2026-11-21 15:21:19.154 Server  1729] Client {PID: 1726, Context: 1} encountered a fatal GPU "
      "error.\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->event, MpsLogEvent::Fault);
  EXPECT_EQ(line->text, "Client {PID: 1726, Context: 1} encountered a fatal GPU error.");
  EXPECT_EQ(line->client, 1726);
}

TEST(MpsLog, AClientWhoseConnectionBrokeHasLeft) {
  const auto line = parse_mps_log(
      "[2026-11-21 15:21:19.019 Server  1729] Server failed to recevie command with status 806, assuming "
      "client {PID: 1727, Context ID: 1} exit");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->event, MpsLogEvent::ClientLeft);
  EXPECT_EQ(line->client, 1727);
}

TEST(MpsLog, AFaultWithoutAClientIsStillOne) {
  const auto line =
      parse_mps_log("[2026-11-21 15:21:19.154 Server  1729] Server is handling a fatal GPU error.");
  ASSERT_TRUE(line);
  EXPECT_FALSE(line->client);
}

TEST(MpsLog, WhoComesIsAnArrival) {
  const auto client =
      parse_mps_log("[2026-11-21 15:21:18.122 Server  1729] Client {PID: 1727, Context ID: 1} connected");
  ASSERT_TRUE(client);
  EXPECT_EQ(client->event, MpsLogEvent::Arrival);
  EXPECT_EQ(client->client, 1727);
  const auto server = parse_mps_log("[2026-11-21 15:21:18.000 Control  17] NEW SERVER 1729: Ready");
  ASSERT_TRUE(server);
  EXPECT_EQ(server->event, MpsLogEvent::Arrival);
  EXPECT_FALSE(server->client);
}

TEST(MpsLog, WhatIsNoFaultOrNotOfTheServerIsNothing) {
  EXPECT_FALSE(
      parse_mps_log("[2026-11-21 15:21:19.019 Server  1729] Client {PID: 1727, Context ID: 1} exiting. "
                    "Number of active client "
                    "contexts is 2."));
  EXPECT_FALSE(parse_mps_log("[2026-11-23 04:55:29.613 Control 13210] FAULT\n")) << "somebody has asked";
  EXPECT_FALSE(parse_mps_log("Segmentation fault"));
  EXPECT_FALSE(parse_mps_log("[fault"));
  EXPECT_FALSE(parse_mps_log(""));
}

/// NVIDIA's device plugin sends the first two all the time.
TEST(MpsLog, CommandsAndAnswersOfTheDaemonAreNoFaults) {
  for (const char* text : {"set_default_active_thread_percentage 50", "get_default_device_pinned_mem_limit 0",
                           "Received command: get_default_active_thread_percentage", "FAULT",
                           "Server 4711 is in state FAULT", "Unknown command: exception"}) {
    EXPECT_FALSE(parse_mps_log(std::string("[2026-11-23 04:55:29.613 Control 13210] ") + text)) << text;
  }
  EXPECT_FALSE(parse_mps_log("[2026-11-23 04:55:29.613 Server 13210] default_fault_handler=on"));
}

TEST(MpsLog, AServerThatCannotGoOnHadNoFaultOfTheGpu) {
  EXPECT_FALSE(parse_mps_log(
      "[2026-11-23 04:55:29.613 Server 13210] Server encountered a fatal exception. Shutting down"));
  EXPECT_TRUE(parse_mps_log("[2026-11-23 04:55:29.613 Server 13210] Server is handling a fatal exception"));
}

TEST(MpsLog, ThatThereIsNoFaultIsNone) {
  const std::string head = "[2026-11-23 04:55:29.613 Server 13210] ";
  for (const char* text :
       {"No fault detected", "no fatal GPU error", "Client 815 left without a fault", "0 fatal errors of 3",
        "a non-fatal error of client 815", "Server is not in a fault", "There was never any exception",
        "Server recovered from a fatal fault", "Fault isolation: on", "fatal fault containment is off",
        "Exception handler installed", "fault handling begins", "Fault cleared", "a replayable-fault buffer"})
    EXPECT_FALSE(parse_mps_log(head + text)) << text;
  for (const char* text :
       {"No client is served: Server is handling a fatal GPU error", "Client 815 faulted, no other did",
        "Client 815 had a fatal fault while handling a command", "No fault before, now a fault of client 815",
        "Uncontained error: fault isolation is off, an exception of client 815",
        "Server will not accept clients after a fatal error"})
    EXPECT_TRUE(parse_mps_log(head + text)) << text;
}

TEST(MpsLog, ANumberBehindAnotherWordIsNoClient) {
  const auto line =
      parse_mps_log("[2026-11-23 04:55:29.613 Server 13210] a fatal error of subclient 77 in rapid 78");
  ASSERT_TRUE(line);
  EXPECT_FALSE(line->client);
}

TEST(TextSources, SurviveMutatedLines) {
  std::mt19937_64 random(test_seed());
  CoreDumpReader reader;
  int told = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string line = round % 5 == 0 ? "[2026-11-21 14:39:55.123 Server  4711] Client 815 had a fatal fault"
                                      : dump_lines[random() % dump_lines.size()];
    for (auto i = random() % 3; i > 0 && !line.empty(); --i) {
      const std::size_t at = random() % line.size();
      if (random() % 2 == 0) {
        line[at] = static_cast<char>(random());
      } else {
        line.erase(at, random() % 20);
      }
    }
    if (const auto exception = reader.read(line)) {
      ++told;
      ASSERT_FALSE(from_core_dump(*exception, 1, from_ns(0)).kind.empty()) << line;
    }
    if (const auto log = parse_mps_log(line)) {
      ASSERT_TRUE(!log->client || *log->client > 0) << line;
    }
  }
  EXPECT_GT(told, 100);
}

}  // namespace
}  // namespace firebreak::fault
