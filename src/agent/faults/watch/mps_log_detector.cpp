// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/mps_log_detector.h"

#include <string>
#include <utility>

#include "agent/faults/fault/mps_log.h"

namespace firebreak::watch {
namespace {

constexpr const char* log_name = "server.log";

}  // namespace

MpsLogDetector::MpsLogDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Options options,
                               FaultCallback on_fault)
    : clock_(clock),
      options_(std::move(options)),
      on_fault_(std::move(on_fault)),
      tail_(
          loop, kernel, [this](std::string_view line) { take_line(line); },
          [this](std::uint64_t bytes) { miss(bytes); }) {}

Status MpsLogDetector::start() {
  if (Status followed = tail_.follow_name(options_.directory, log_name); !followed) {
    return propagate(followed, "no MPS server log");
  }
  return {};
}

void MpsLogDetector::miss(std::uint64_t bytes) {
  if (!options_.on_gap) return;
  Gap gap;
  gap.source = fault::FaultSource::MpsLog;
  gap.domain = options_.domain;
  gap.text = std::to_string(bytes) + " bytes of " + log_name + " came faster than they can be read";
  options_.on_gap(gap);
}

void MpsLogDetector::take_line(std::string_view text) {
  const auto line = fault::parse_mps_log(text);
  if (!line) return;
  if (line->event == fault::MpsLogEvent::Arrival) {
    if (options_.on_arrival) options_.on_arrival(line->client);
    return;
  }
  fault::Fault fault;
  fault.kind = "MPS log: " + line->text;
  if (line->event == fault::MpsLogEvent::ClientLeft) {
    fault.fault_class = fault::FaultClass::Termination;
    fault.conclusive = false;
  }
  fault.domain = options_.domain;
  fault.pid = line->client;
  fault.when = clock_.now();
  fault.source = fault::FaultSource::MpsLog;
  on_fault_(fault);
}

}  // namespace firebreak::watch
