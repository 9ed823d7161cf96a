// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/isolation.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <utility>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::watch {
namespace {

using testing::HasSubstr;

// The texts are as the module printed them in a QEMU guest (docs/how/bench.md), shortened.
constexpr const char* state_text =
    "format 1\nmode on\ncondemned 3\nkilled 1\nsinks 0\nfault no_range contained 2\n"
    "fault external contained 1\nfault context unsupported 4\nfault termination deferred 5\n";
constexpr const char* event_text =
    "event 7 ns=6842054123 pid=131 gpu=0 address=0x500000000000 path=replayable "
    "access=UVM_FAULT_ACCESS_TYPE_WRITE type=UVM_FAULT_TYPE_INVALID_PDE client=3 class=no_range "
    "outcome=contained us=812 command=a program=b";

constexpr Monotonic now{Milliseconds(7)};

IsolationEvent event_with(const std::string& before, const std::string& after) {
  std::string line = event_text;
  const std::size_t at = line.find(before);
  EXPECT_NE(at, std::string::npos);
  return parse_isolation_event(line.replace(at, before.size(), after)).value();
}

TEST(IsolationState, IsReadFromTheModulesFile) {
  const IsolationState state = parse_isolation_state(state_text).value();
  EXPECT_EQ(state.mode, IsolationMode::On);
  EXPECT_EQ(state.condemned, 3u);
  EXPECT_EQ(state.killed, 1u);
  EXPECT_EQ(state.sinks, 0);
  ASSERT_EQ(state.faults.size(), 4u);
  EXPECT_EQ(state.faults[2].fault_class, "context");
  EXPECT_EQ(state.faults[2].word, "unsupported");
  EXPECT_EQ(state.faults[2].count, 4u);
  EXPECT_EQ(describe(state),
            "on; 3 contained (2 no_range, 1 external); 4 not contained (4 context unsupported); "
            "5 ends put off (5 termination); 1 killed by the module");
}

TEST(IsolationState, OfReportModeSaysWhatModeOnWouldHaveComeTo) {
  // The text is as the module printed it in a QEMU guest, shortened.
  const auto state = parse_isolation_state(
      "format 1\nmode report\ncondemned 0\nfault no_range reported 3\nfault managed reported 1\n"
      "foreseen condemned 2\nforeseen killed_at_once 1\nforeseen sinks 4\nforeseen table_kib 16\n"
      "foreseen fault no_range contained 2\nforeseen fault no_range held 1\n"
      "foreseen fault managed spared 1\nforeseen fault termination deferred 5\n");
  EXPECT_EQ(describe(state.value()),
            "report only; 4 not contained (3 no_range reported, 1 managed reported); mode on would have come "
            "to: 3 contained (2 no_range, 1 no_range), 1 spared (1 managed), 5 ends put off (5 termination), "
            "2 clients ended, 1 of them at once");
  const char* nothing = "format 1\nmode on\nforeseen condemned 0\nforeseen killed_at_once 0\n";
  EXPECT_EQ(describe(parse_isolation_state(nothing).value()), "on");
  for (const char* line : {"condemned many", "killed_at_once", "fault no_range contained", "fault"}) {
    const auto none = parse_isolation_state(std::string("format 1\nmode report\nforeseen ") + line + "\n");
    ASSERT_FALSE(none.has_value()) << line;
    EXPECT_EQ(none.error().code, ErrorCode::Protocol) << line;
  }
}

TEST(IsolationState, OfANewerModuleIsReadAsFarAsItIsUnderstood) {
  const auto state = parse_isolation_state("format 1\nmode report\nhorizon 9\nfault hmm reported 1\n");
  EXPECT_EQ(describe(state.value()), "report only; 1 not contained (1 hmm reported)");
  EXPECT_EQ(parse_isolation_state("format 2\nmode on\n").error().code, ErrorCode::Protocol);
  EXPECT_EQ(parse_isolation_state("format 1\nmode perhaps\n").error().code, ErrorCode::Protocol);
  EXPECT_EQ(parse_isolation_state("format 1\nmode on\ncondemned many\n").error().code, ErrorCode::Protocol);
  EXPECT_EQ(parse_isolation_state("format 1\nmode on\nfault no_range contained\n").error().code,
            ErrorCode::Protocol);
  EXPECT_EQ(parse_isolation_state("").error().code, ErrorCode::Protocol);
}

TEST(IsolationState, OfTheStockModuleIsNotThere) {
  os::FakeKernel kernel;
  EXPECT_EQ(read_isolation_state(kernel).error().code, ErrorCode::NotFound);
  kernel.set_file(isolation_state_path, state_text);
  EXPECT_EQ(read_isolation_state(kernel)->killed, 1u);
}

TEST(IsolationEvent, IsReadFromItsLine) {
  const IsolationEvent event = parse_isolation_event(event_text).value();
  EXPECT_EQ(event.sequence, 7u);
  EXPECT_EQ(event.pid, 131);
  EXPECT_EQ(event.address, 0x500000000000u);
  EXPECT_TRUE(event.replayable);
  EXPECT_EQ(event.access, "write");
  EXPECT_EQ(event.type, "invalid pde");
  EXPECT_EQ(event.fault_class, "no_range");
  EXPECT_EQ(event.word, "contained");
  EXPECT_EQ(event.took_us, 812u);
  EXPECT_EQ(event.command, "a program=b");
}

TEST(IsolationEvent, ThatIsNoneIsRefused) {
  for (const char* line :
       {"", "event", "event x pid=1 class=no_range outcome=alone", "event 1", "event 1 pid=1 class=no_range",
        "incident 1 class=no_range outcome=alone", "event 1 pid=one class=no_range outcome=alone",
        "event 1 address=500 class=no_range outcome=alone"}) {
    const auto event = parse_isolation_event(line);
    ASSERT_FALSE(event.has_value()) << line;
    EXPECT_EQ(event.error().code, ErrorCode::Protocol) << line;
  }
}

TEST(IsolationEvent, OfAContainedFaultIsASignalThatNamesTheProcess) {
  const auto fault = fault_of(parse_isolation_event(event_text).value(), now);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->fault_class, fault::FaultClass::MmuReplayable);
  EXPECT_EQ(fault->kind, "contained: write, invalid pde, no_range");
  EXPECT_EQ(fault->pid, 131);
  EXPECT_EQ(fault->address, 0x500000000000u);
  EXPECT_TRUE(fault->conclusive);
  EXPECT_TRUE(fault->contained);
  EXPECT_EQ(fault->when, now);
  EXPECT_EQ(fault->source, fault::FaultSource::Isolation);
}

// The module answers it with replays alone, and kills its process at once: the neighbours go on.
TEST(IsolationEvent, OfAHeldFaultIsContained) {
  const auto fault = fault_of(event_with("=contained", "=held"), now);
  ASSERT_TRUE(fault.has_value());
  EXPECT_TRUE(fault->contained);
  EXPECT_EQ(fault->pid, 131);
}

TEST(IsolationCondemned, NamesItsProcess) {
  const auto event = parse_condemned("condemned pid=131 command=a program=b");
  ASSERT_TRUE(event.has_value());
  const auto fault = fault_of(*event, now);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->pid, 131);
  EXPECT_TRUE(fault->contained);
  EXPECT_FALSE(fault->address.has_value());
  EXPECT_THAT(fault->kind, HasSubstr("lost"));
}

TEST(IsolationCondemned, ThatIsNoneIsRefused) {
  for (const char* line : {"", "condemned", "condemned pid=x command=a", "condemned pid=0 command=a",
                           "event 1 pid=1 command=a", "condemned pid=131"}) {
    EXPECT_FALSE(parse_condemned(line).has_value()) << line;
  }
}

TEST(IsolationServers, AreNamedByTheirNumber) {
  const os::TemporaryDirectory directory = os::TemporaryDirectory::create().value();
  const std::string path = directory.path() + "/servers";
  os::RealKernel beneath;
  ASSERT_TRUE(beneath.open(path, O_CREAT | O_RDWR));
  os::FakeKernel kernel;
  os::FakeDevice servers;
  servers.open = [&](int flags) { return beneath.open(path, flags); };
  kernel.set_device(isolation_servers_path, std::move(servers));
  ASSERT_TRUE(name_mps_server(kernel, 4711));
  EXPECT_EQ(beneath.read_file(path).value(), "4711\n");
}

TEST(IsolationServers, AreNamedToNobodyWithTheStockModule) {
  os::FakeKernel kernel;
  EXPECT_EQ(name_mps_server(kernel, 4711).error().code, ErrorCode::NotFound);
}

TEST(IsolationEvent, OfACopyEngineIsNotReplayable) {
  const auto fault = fault_of(event_with("path=replayable", "path=non_replayable"), now);
  EXPECT_EQ(fault->fault_class, fault::FaultClass::MmuNonReplayable);
}

TEST(IsolationEvent, OfACancelledFaultSaysWhy) {
  for (const std::string word : {"reported", "alone", "unsupported", "failed"}) {
    const auto fault = fault_of(event_with("=contained", "=" + word), now);
    EXPECT_EQ(fault->kind, "not contained (" + word + "): write, invalid pde, no_range");
    EXPECT_FALSE(fault->contained) << word;
    EXPECT_TRUE(fault->conclusive) << word;
    EXPECT_EQ(fault->pid, 131) << word;
  }
}

TEST(IsolationEvent, NamesNobodyWhereTheModuleIsInDoubt) {
  EXPECT_FALSE(fault_of(event_with("=contained", "=doubt"), now)->pid.has_value());
  EXPECT_FALSE(fault_of(event_with("pid=131", "pid=0"), now)->pid.has_value());
}

TEST(IsolationEvent, OfSomebodySparedIsNoFaultOfHis) {
  EXPECT_FALSE(fault_of(event_with("=contained", "=spared"), now).has_value());
  EXPECT_FALSE(fault_of(event_with("=contained", "=something_new"), now).has_value());
}

TEST(IsolationEvent, OfADeferredEndIsADepartureAndAloneNoFault) {
  const auto event = parse_isolation_event(
      "event 8 ns=1 pid=140 gpu=0 address=0x0 path=none access=none type=none client=0 class=termination "
      "outcome=deferred us=0 command=python3");
  const auto fault = fault_of(event.value(), now);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->fault_class, fault::FaultClass::Termination);
  EXPECT_FALSE(fault->conclusive);
  EXPECT_FALSE(fault->address.has_value());
  EXPECT_TRUE(fault::is_departure(*fault));
  EXPECT_THAT(fault->kind, HasSubstr("put off"));
}

}  // namespace
}  // namespace firebreak::watch
