// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/source_traits.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "agent/faults/fault/attribution.h"

namespace firebreak::fault {
namespace {

TEST(SourceTraits, NamesAndKeysAreUniqueAndKeysAreForPrograms) {
  std::set<std::string> names, keys;
  for (const SourceTraits& row : all_source_traits()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_THAT(row.key, ::testing::MatchesRegex("[a-z]+(_[a-z]+)*"));
    EXPECT_EQ(&traits_of(row.source), &row);
    EXPECT_STREQ(to_string(row.source), row.name);
  }
  EXPECT_FALSE(keys.empty());
}

/// The keys stand in result files that were written before.
TEST(SourceTraits, KeysOfResultsStay) {
  const std::map<FaultSource, std::string> kept{
      {FaultSource::UvmEvent, "uvm_event"},       {FaultSource::Isolation, "uvm_isolation"},
      {FaultSource::ProcessExit, "process_exit"}, {FaultSource::Xid, "xid"},
      {FaultSource::MpsLog, "mps_log"},           {FaultSource::Nvml, "nvml"},
      {FaultSource::CoreDump, "core_dump"},       {FaultSource::Progress, "progress"},
      {FaultSource::CudaError, "cuda_error"},     {FaultSource::Operator, "operator"}};
  for (const auto& [source, key] : kept) EXPECT_EQ(traits_of(source).key, key);
}

TEST(SourceTraits, WhoNamesTheCulpritForCertainIsBelieved) {
  for (const SourceTraits& row : all_source_traits()) {
    Fault fault;
    fault.source = row.source;
    fault.fault_class = FaultClass::Sm;
    fault.kind = "a fault";
    fault.pid = 4711;
    Incident incident;
    incident.signals = {fault};
    incident.fault_class = FaultClass::Sm;
    const Culprit culprit = attribute(incident, {});
    const bool certain = row.names_culprit == NamesCulprit::Certainly;
    EXPECT_EQ(culprit.confidence == Confidence::Certain, certain) << row.name;
    EXPECT_EQ(std::string(row.witness).empty(), !certain) << row.name;
    if (!certain) continue;
    EXPECT_EQ(culprit.evidence.front(), row.witness + std::string("process 4711 says a fault"));
  }
}

TEST(SourceTraits, DeparturesAreToldAlwaysByClassOrNever) {
  for (const SourceTraits& row : all_source_traits()) {
    Fault fault;
    fault.source = row.source;
    fault.fault_class = FaultClass::Termination;
    EXPECT_EQ(is_departure(fault), row.departures != TellsOfDepartures::Never) << row.name;
    fault.fault_class = FaultClass::Sm;
    EXPECT_EQ(is_departure(fault), row.departures == TellsOfDepartures::Always) << row.name;
  }
}

/// A pair promotes by one alone of the sources; another one here is a decision about every tenant's memory.
TEST(SourceTraits, OnlyTheXidLineIsAFence) {
  for (const SourceTraits& row : all_source_traits())
    EXPECT_EQ(row.is_fence, row.source == FaultSource::Xid) << row.name;
}

}  // namespace
}  // namespace firebreak::fault
