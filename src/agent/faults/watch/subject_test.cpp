// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/subject.h"

#include <gtest/gtest.h>

namespace firebreak::watch {
namespace {

using fault::FaultSource;

const Target decode{.pid = 4711, .gpu = 1, .domain = "a", .tenant = "decode"};

std::optional<std::string> domain_of_server(pid_t pid) {
  return pid == 99 ? std::optional<std::string>("b") : std::nullopt;
}

const Places places = {.domain_of_server = domain_of_server};

fault::Fault of(FaultSource source, pid_t pid) {
  fault::Fault fault;
  fault.source = source;
  fault.pid = pid;
  return fault;
}

TEST(Subject, AnXidOfAFollowedProcessIsOfItsDomainAndOfNoTenant) {
  const fault::Fault fault = completed(of(FaultSource::Xid, 4711), &decode, places);
  EXPECT_EQ(fault.domain, "a");
  EXPECT_FALSE(fault.tenant);
  EXPECT_FALSE(fault.gpu.number) << "the Xid has its own word for that";
}

TEST(Subject, WhoNamesTheCulpritForCertainNamesItsTenant) {
  const fault::Fault fault = completed(of(FaultSource::Isolation, 4711), &decode, places);
  EXPECT_EQ(fault.domain, "a");
  EXPECT_EQ(fault.tenant, "decode");
  EXPECT_EQ(fault.gpu.number, 1u);
}

TEST(Subject, AServersNameSaysWhichDomainItIs) {
  EXPECT_EQ(completed(of(FaultSource::Xid, 99), nullptr, places).domain, "b");
  EXPECT_EQ(completed(of(FaultSource::Xid, 98), nullptr, places).domain, "");
  EXPECT_EQ(completed(of(FaultSource::Xid, 99), nullptr, {}).domain, "");
}

TEST(Subject, WhatTheSourceKnewStays) {
  fault::Fault fault = of(FaultSource::Xid, 99);
  fault.domain = "its own";
  EXPECT_EQ(completed(fault, nullptr, places).domain, "its own");
  EXPECT_EQ(completed(fault, &decode, places).domain, "its own");
  EXPECT_EQ(completed(of(FaultSource::MpsLog, 4711), &decode, places).domain, "");
}

/// What it says of itself, and where it was told to run: MPS has not named it yet.
TEST(Subject, WhereAProcessSaysThatItIsSaysNothingOfOthers) {
  const Target says{.pid = 4711, .said = "a"}, was_told{.pid = 4711, .said = "a", .is_told = true};
  for (const FaultSource source : {FaultSource::Xid, FaultSource::UvmEvent, FaultSource::Isolation,
                                   FaultSource::CoreDump, FaultSource::ProcessExit, FaultSource::Progress})
    EXPECT_EQ(completed(of(source, 4711), &says, places).domain, "") << fault::to_string(source);
  for (const FaultSource source : {FaultSource::Xid, FaultSource::UvmEvent, FaultSource::Isolation})
    EXPECT_EQ(completed(of(source, 4711), &was_told, places).domain, "a") << "the driver names it";
  for (const FaultSource source : {FaultSource::CoreDump, FaultSource::ProcessExit, FaultSource::Progress})
    EXPECT_EQ(completed(of(source, 4711), &was_told, places).domain, "") << fault::to_string(source);
}

/// A detector has the words with which it was told to follow.
TEST(Subject, WhatHasBecomeKnownOfAProcessCountsForEachSource) {
  for (const FaultSource source : {FaultSource::UvmEvent, FaultSource::CoreDump, FaultSource::ProcessExit})
    EXPECT_EQ(completed(of(source, 4711), &decode, places).domain, "a") << fault::to_string(source);
}

/// Two GPUs; domain "b" is on the second.
Places two_gpus() {
  Places places = {.domain_of_server = domain_of_server, .gpus = {"0000:3b:00", "0000:5e:00"}};
  places.gpu_of_domain = [](const std::string& domain) {
    return domain == "b" ? std::optional<std::uint32_t>(1) : std::nullopt;
  };
  return places;
}

fault::Fault xid_at(const std::string& pci, pid_t pid = 99) {
  fault::Fault fault = of(FaultSource::Xid, pid);
  fault.gpu.pci = pci;
  return fault;
}

TEST(Subject, AnAddressSaysWhichGpuItIs) {
  const fault::Fault fault = completed(xid_at("0000:5e:00"), nullptr, two_gpus());
  EXPECT_EQ(fault.gpu.number, 1u);
  EXPECT_EQ(fault.domain, "b");
  EXPECT_EQ(describe(fault.gpu), "GPU 1 (0000:5e:00)");
}

TEST(Subject, AnAddressThatNobodyKnowsIsNoGpuOfOurs) {
  const fault::Fault fault = completed(xid_at("0000:99:00"), nullptr, two_gpus());
  EXPECT_FALSE(fault.gpu.number);
  EXPECT_FALSE(fault.gpu.is_here);
  EXPECT_EQ(fault.domain, "") << "whoever it names";
  EXPECT_TRUE(completed(xid_at("0000:99:00"), nullptr, {}).gpu.is_here) << "where no GPU is known";
}

TEST(Subject, AFaultOfAnotherGpuIsNotOfTheDomainOfWhomItNames) {
  EXPECT_EQ(completed(xid_at("0000:3b:00"), nullptr, two_gpus()).domain, "");
  EXPECT_EQ(completed(xid_at("0000:3b:00", 4711), &decode, two_gpus()).domain, "a") << "it may be on any";
}

TEST(Subject, ADomainSaysWhichGpuItIsToWhoDoesNotKnowIt) {
  fault::Fault fault = of(FaultSource::MpsLog, 99);
  fault.domain = "b";
  EXPECT_EQ(describe(completed(fault, nullptr, two_gpus()).gpu), "GPU 1 (0000:5e:00)");
  EXPECT_EQ(describe(completed(of(FaultSource::UvmEvent, 99), nullptr, two_gpus()).gpu), "");
}

TEST(Subject, WhatNvmlCountsMayBeAPartOfTheMachinesGpus) {
  fault::Fault fault = xid_at("0000:5e:00");
  fault.source = FaultSource::Nvml;
  fault.gpu.number = 0;
  EXPECT_EQ(completed(fault, nullptr, two_gpus()).gpu.number, 1u);
}

TEST(Subject, AFaultOfNobodyHasNoSubject) {
  fault::Fault fault;
  fault.source = FaultSource::Xid;
  EXPECT_EQ(completed(fault, nullptr, places).domain, "");
}

}  // namespace
}  // namespace firebreak::watch
