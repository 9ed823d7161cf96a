// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "agent/faults/fault/xid.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::fault {
namespace {

constexpr std::string_view memory_fault =
    "NVRM: Xid (PCI:0000:00:05): 31, pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE "
    "GRAPHICS GPC2 "
    "GPCCLIENT_T1_3 faulted @ 0x7000_dead0000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE";
constexpr std::string_view sm_fault =
    "NVRM: Xid (PCI:0000:00:05): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 2, "
    "TPC 0, SM "
    "0): Misaligned Address";
constexpr std::string_view server_fault =
    "NVRM: Xid (PCI:0000:00:05): 43, pid=123, name=nvidia-cuda-mps-server, Ch 00000008";
constexpr std::string_view copy_fault =
    "NVRM: Xid (PCI:0000:00:05): 31, pid=77, name=copier, Ch 00000010, intr 00000000. MMU Fault: ENGINE CE3 "
    "HUBCLIENT_CE0 faulted @ 0x1_00000000. Fault is of type FAULT_PTE ACCESS_TYPE_VIRT_READ";

TEST(ParseXid, ReadsEveryFieldOfAMemoryFault) {
  const auto line = parse_xid(memory_fault);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 31);
  EXPECT_EQ(line->pci, "0000:00:05");
  EXPECT_EQ(line->pid, 4711);
  EXPECT_EQ(line->process, "python3");
  EXPECT_EQ(line->channel, 8u);
  EXPECT_EQ(line->engine, "GRAPHICS GPC2");
  EXPECT_EQ(line->client, "GPCCLIENT_T1_3");
  EXPECT_EQ(line->address, 0x7000dead0000u);
  EXPECT_EQ(line->fault_type, "FAULT_PDE");
  EXPECT_EQ(line->access_type, "ACCESS_TYPE_VIRT_WRITE");
}

// The lines are as an H100's driver prints them: names are cut to 15 characters, channels have another form.
constexpr std::string_view pbdma_fault =
    "NVRM: Xid (PCI:0000:00:05): 31, pid=2211, name=tenant, channel 0x0000000a, intr 00000000. MMU Fault: "
    "ENGINE GR0_PBDMA1 HUBCLIENT_ESC faulted @ 0x7f12_c8000000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_WRITE";
constexpr std::string_view fetch_fault =
    "NVRM: Xid (PCI:0000:00:05): 31, pid=2212, name=nvidia-cuda-mps, channel 0x00000002, intr 00000000. MMU "
    "Fault: "
    "ENGINE GRAPHICS GPC5 GPCCLIENT_GCC faulted @ 0x0_00000000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_READ";
constexpr std::string_view copy_fault_without_client =
    "NVRM: Xid (PCI:0000:00:05): 31, pid=2213, name=tenant, channel 0x0000000c, intr 00000000. MMU Fault: "
    "ENGINE CE2 faulted @ 0x7f12_c8000000. Fault is of type FAULT_PTE ACCESS_TYPE_VIRT_READ";
constexpr std::string_view h100_server_fault =
    "NVRM: Xid (PCI:0000:00:05): 43, pid=2212, name=nvidia-cuda-mps, channel 0x0000000a";

TEST(ParseXid, ReadsTheLinesOfAnH100) {
  const auto pbdma = parse_xid(pbdma_fault);
  ASSERT_TRUE(pbdma);
  EXPECT_EQ(pbdma->pid, 2211);
  EXPECT_EQ(pbdma->channel, 10u);
  EXPECT_EQ(pbdma->engine, "GR0_PBDMA1");
  EXPECT_EQ(pbdma->client, "HUBCLIENT_ESC");
  const Fault fault = from_xid(*pbdma, from_ns(5));
  EXPECT_EQ(fault.fault_class, FaultClass::MmuNonReplayable);
  EXPECT_EQ(fault.place, "GR0_PBDMA1 HUBCLIENT_ESC");

  const auto fetch = parse_xid(fetch_fault);
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->process, "nvidia-cuda-mps");
  EXPECT_EQ(fetch->address, 0u);
  EXPECT_EQ(from_xid(*fetch, from_ns(5)).fault_class, FaultClass::MmuReplayable);
  EXPECT_EQ(from_xid(*fetch, from_ns(5)).place, "GRAPHICS GPC5 GPCCLIENT_GCC");

  const auto copy = parse_xid(copy_fault_without_client);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->engine, "CE2");
  EXPECT_FALSE(copy->client);
  EXPECT_EQ(from_xid(*copy, from_ns(5)).fault_class, FaultClass::MmuNonReplayable);

  const auto server = parse_xid(h100_server_fault);
  ASSERT_TRUE(server);
  EXPECT_EQ(server->channel, 10u);
}

TEST(ParseXid, LeavesEmptyWhatTheDriverDoesNotKnow) {
  const auto line = parse_xid(sm_fault);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 13);
  EXPECT_FALSE(line->pid);
  EXPECT_FALSE(line->process);
  EXPECT_FALSE(line->channel);
  EXPECT_FALSE(line->address);
  EXPECT_EQ(line->detail, "Graphics SM Warp Exception on (GPC 2, TPC 0, SM 0): Misaligned Address");
}

TEST(ParseXid, ReadsALineThatEndsAfterTheChannel) {
  const auto line = parse_xid(server_fault);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 43);
  EXPECT_EQ(line->pid, 123);
  EXPECT_EQ(line->process, "nvidia-cuda-mps-server");
  EXPECT_EQ(line->channel, 8u);
  EXPECT_EQ(line->detail, "");
}

TEST(ParseXid, ReadsALineOfNothingButACode) {
  const auto line = parse_xid("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 79);
  EXPECT_EQ(line->pci, "0000:3b:00");
}

// A line of the kernel begins with the name of whom it speaks of, and that may be any 15 characters.
TEST(ParseXid, AProcessCannotNameItselfSo) {
  for (const char* name :
       {"Xid ():8,pid=1,", "Xid (PCI:0:1:2)", "NVRM: Xid (PCI:", "NVRM: Xid (0:0:", "NVRM: Xid ():8,"}) {
    EXPECT_FALSE(
        parse_xid(std::string(name) + "[4711]: segfault at 0 ip 00000000 error 4 in a.out[400000+1000]"));
    EXPECT_FALSE(parse_xid(std::string(name) + "): 31, pid=1, name=a, Ch 8")) << name;
  }
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00): 31, pid=1"));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00:05:1): 31, pid=1"));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00:): 31, pid=1"));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI::00:05): 31, pid=1"));
}

TEST(ParseXid, AcceptsTheTimeThatDmesgPutsInFront) {
  const auto line = parse_xid("[  966.503025] NVRM: Xid (PCI:0000:06:00): 62, 1 2 3");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 62);
}

TEST(ParseXid, LooksAtTheFirstLineOnly) {
  const auto line = parse_xid("NVRM: Xid (PCI:0000:00:05): 43\n SUBSYSTEM=pci");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 43);
  EXPECT_FALSE(parse_xid("nothing\nNVRM: Xid (PCI:0000:00:05): 43"));
}

TEST(ParseXid, RefusesWhatOnlyQuotesAnXid) {
  EXPECT_FALSE(parse_xid("a.out[12]: segfault, Xid (PCI:0000:00:05): 31, pid=1"));
  EXPECT_FALSE(parse_xid("NVRM: GPU at PCI:0000:00:05: GPU-0"));
  EXPECT_FALSE(parse_xid(""));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00:05"));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00:05): "));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00:05): 99999999999999999999, x"));
  EXPECT_FALSE(parse_xid("NVRM: Xid (PCI:0000:00:05): -31, x"));
}

TEST(ParseXid, DropsANumberThatDoesNotFit) {
  const auto line =
      parse_xid("NVRM: Xid (PCI:0000:00:05): 31, pid=99999999999, name=x, Ch 123456789a, faulted @ 0x_");
  ASSERT_TRUE(line);
  EXPECT_FALSE(line->pid);
  EXPECT_FALSE(line->channel);
  EXPECT_FALSE(line->address);
  EXPECT_EQ(line->process, "x");
}

TEST(FromXid, TellsReplayableFromNonReplayableByTheMmuClient) {
  EXPECT_EQ(from_xid(*parse_xid(memory_fault), from_ns(5)).fault_class, FaultClass::MmuReplayable);
  EXPECT_EQ(from_xid(*parse_xid(copy_fault), from_ns(5)).fault_class, FaultClass::MmuNonReplayable);
}

TEST(FromXid, KeepsWhatTheLineSays) {
  const Fault fault = from_xid(*parse_xid(memory_fault), from_ns(5));
  EXPECT_EQ(fault.kind, "Xid 31");
  EXPECT_EQ(fault.xid, 31);
  EXPECT_EQ(fault.pid, 4711);
  EXPECT_EQ(fault.address, 0x7000dead0000u);
  EXPECT_EQ(fault.gpu.pci, "0000:00:05");
  EXPECT_FALSE(fault.gpu.number) << "that is for who knows the machine";
  EXPECT_EQ(fault.when, from_ns(5));
  EXPECT_EQ(fault.source, FaultSource::Xid);
  EXPECT_FALSE(fault.tenant);
}

TEST(FromXid, AnUnknownCodeIsStillAFault) {
  const Fault fault = from_xid(*parse_xid("NVRM: Xid (PCI:0000:00:05): 4242, news"), from_ns(0));
  EXPECT_EQ(fault.fault_class, FaultClass::Unknown);
  EXPECT_EQ(fault.xid, 4242);
}

/// One of: a byte changed, a piece cut out, a piece doubled, two lines spliced.
std::string mutate(std::string text, std::string_view other, std::mt19937_64& random) {
  const auto position = [&](std::size_t size) {
    return std::uniform_int_distribution<std::size_t>(0, size)(random);
  };
  switch (random() % 4) {
    case 0:
      if (!text.empty()) text[position(text.size() - 1)] = static_cast<char>(random());
      return text;
    case 1: {
      const std::size_t from = position(text.size());
      return text.erase(from, position(text.size() - from));
    }
    case 2: {
      const std::size_t from = position(text.size());
      return text.insert(from, text.substr(position(text.size()), 40));
    }
    default:
      return text.substr(0, position(text.size())) + std::string(other.substr(position(other.size())));
  }
}

TEST(ParseXid, SurvivesMutatedLines) {
  std::mt19937_64 random(test_seed());
  const std::array lines{memory_fault,
                         sm_fault,
                         server_fault,
                         copy_fault,
                         pbdma_fault,
                         fetch_fault,
                         copy_fault_without_client,
                         h100_server_fault};
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text(lines[random() % lines.size()]);
    const unsigned mutations = 1 + random() % 4;
    for (unsigned i = 0; i < mutations; ++i) text = mutate(text, lines[random() % lines.size()], random);
    const auto line = parse_xid(text);
    if (!line) continue;
    ++parsed;
    ASSERT_GE(line->code, 0) << text;
    ASSERT_LE(line->detail.size(), text.size()) << text;
    ASSERT_TRUE(!line->pid || *line->pid > 0) << text;
    ASSERT_FALSE(describe(from_xid(*line, from_ns(0))).empty());
  }
  // The test needs both outcomes, or the mutations are too wild or too tame.
  EXPECT_GT(parsed, 1000);
  EXPECT_LT(parsed, 19'999);
}

}  // namespace
}  // namespace firebreak::fault
