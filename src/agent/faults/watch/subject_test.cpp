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

fault::Fault of(FaultSource source, pid_t pid) {
  fault::Fault fault;
  fault.source = source;
  fault.pid = pid;
  return fault;
}

TEST(Subject, AnXidOfAFollowedProcessIsOfItsDomainAndOfNoTenant) {
  const fault::Fault fault = completed(of(FaultSource::Xid, 4711), &decode, domain_of_server);
  EXPECT_EQ(fault.domain, "a");
  EXPECT_FALSE(fault.tenant);
  EXPECT_EQ(fault.gpu, 0u) << "the Xid has its own word for that";
}

TEST(Subject, WhoNamesTheCulpritForCertainNamesItsTenant) {
  const fault::Fault fault = completed(of(FaultSource::Isolation, 4711), &decode, domain_of_server);
  EXPECT_EQ(fault.domain, "a");
  EXPECT_EQ(fault.tenant, "decode");
  EXPECT_EQ(fault.gpu, 1u);
}

TEST(Subject, AServersNameSaysWhichDomainItIs) {
  EXPECT_EQ(completed(of(FaultSource::Xid, 99), nullptr, domain_of_server).domain, "b");
  EXPECT_EQ(completed(of(FaultSource::Xid, 98), nullptr, domain_of_server).domain, "");
  EXPECT_EQ(completed(of(FaultSource::Xid, 99), nullptr, nullptr).domain, "");
}

TEST(Subject, WhatTheSourceKnewStays) {
  fault::Fault fault = of(FaultSource::Xid, 99);
  fault.domain = "its own";
  EXPECT_EQ(completed(fault, nullptr, domain_of_server).domain, "its own");
  EXPECT_EQ(completed(fault, &decode, domain_of_server).domain, "its own");
  EXPECT_EQ(completed(of(FaultSource::MpsLog, 4711), &decode, domain_of_server).domain, "");
}

TEST(Subject, AFaultOfNobodyHasNoSubject) {
  fault::Fault fault;
  fault.source = FaultSource::Xid;
  EXPECT_EQ(completed(fault, nullptr, domain_of_server).domain, "");
}

}  // namespace
}  // namespace firebreak::watch
