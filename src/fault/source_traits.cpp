// SPDX-License-Identifier: Apache-2.0
#include "fault/source_traits.h"

#include <algorithm>
#include <array>

namespace firebreak::fault {
namespace {

constexpr std::array table{
    SourceTraits{.source = FaultSource::UvmEvent,
                 .name = "UVM event",
                 .key = "uvm_event",
                 .names_culprit = NamesCulprit::Certainly,
                 .witness = "UVM's queue of ",
                 .is_uvm = true,
                 .merges = MergeRule::OwnFault,
                 .weights = {.fault = 6}},
    SourceTraits{.source = FaultSource::Isolation,
                 .name = "UVM isolation",
                 .key = "uvm_isolation",
                 .names_culprit = NamesCulprit::Certainly,
                 .witness = "UVM's isolation of ",
                 .is_uvm = true,
                 .has_process_alone = true,
                 .departures = TellsOfDepartures::ByClass,
                 .merges = MergeRule::Isolation,
                 .weights = {.fault = 7}},
    SourceTraits{.source = FaultSource::ProcessExit,
                 .name = "process exit",
                 .key = "process_exit",
                 .names_culprit = NamesCulprit::Perhaps,
                 .departures = TellsOfDepartures::Always,
                 .merges = MergeRule::Consequence,
                 .weights = {.departure_as_cause = 7, .departure = 0}},
    SourceTraits{.source = FaultSource::Xid,
                 .name = "kmsg",
                 .key = "xid",
                 .names_culprit = NamesCulprit::Perhaps,
                 .is_fence = true,
                 .has_process_alone = true,
                 .merges = MergeRule::Xid,
                 .weights = {.fault = 5}},
    SourceTraits{.source = FaultSource::MpsLog,
                 .name = "MPS log",
                 .key = "mps_log",
                 .departures = TellsOfDepartures::ByClass,
                 .merges = MergeRule::ServerLog,
                 .weights = {.departure_as_cause = 6}},
    SourceTraits{.source = FaultSource::Nvml,
                 .name = "NVML",
                 .key = "nvml",
                 .merges = MergeRule::Xid,
                 .weights = {.fault = 3}},
    SourceTraits{.source = FaultSource::CoreDump,
                 .name = "core dump",
                 .key = "core_dump",
                 .names_culprit = NamesCulprit::Certainly,
                 .witness = "the core dump of ",
                 .merges = MergeRule::CoreDump,
                 .weights = {.fault = 8}},
    SourceTraits{.source = FaultSource::Progress,
                 .name = "progress",
                 .key = "progress",
                 .names_culprit = NamesCulprit::Perhaps,
                 .merges = MergeRule::Consequence},
    SourceTraits{.source = FaultSource::CudaError,
                 .name = "CUDA error",
                 .key = "cuda_error",
                 .merges = MergeRule::Consequence},
    SourceTraits{.source = FaultSource::Operator, .name = "operator", .key = "operator"},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].source) != i) return false;
  }
  return true;
}
static_assert(is_in_order(), "one row a source, in the order of FaultSource");

}  // namespace

std::span<const SourceTraits> all_source_traits() { return table; }

const SourceTraits& traits_of(FaultSource source) {
  return table[std::min(static_cast<std::size_t>(source), table.size() - 1)];
}

}  // namespace firebreak::fault
