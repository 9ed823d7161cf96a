// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/subject.h"

#include <algorithm>

#include "agent/faults/fault/source_traits.h"

namespace firebreak::watch {

namespace {

/// Numbers a GPU by its address, where that is told.
void number(fault::Gpu& gpu, const std::vector<std::string>& known) {
  if (gpu.pci.empty() || known.empty()) return;
  const auto found = std::ranges::find(known, gpu.pci);
  gpu.is_here = found != known.end();
  gpu.number.reset();
  if (gpu.is_here) gpu.number = static_cast<std::uint32_t>(found - known.begin());
}

/// The other way round, and by the domain.
void locate(fault::Fault& fault, const Places& places) {
  fault::Gpu& gpu = fault.gpu;
  if (gpu.pci.empty() && !gpu.number) gpu.number = places.number_of_domain(fault.domain);
  if (gpu.pci.empty() && gpu.number && *gpu.number < places.gpus.size()) gpu.pci = places.gpus[*gpu.number];
}

void place(fault::Fault& fault, const Target* followed, const Places& places) {
  const fault::SourceTraits& source = fault::traits_of(fault.source);
  if (!fault.pid) return;
  if (!source.has_process_alone) {
    // A detector knows what was known of the process when it began to follow it.
    const bool is_its_own = followed != nullptr && source.names_culprit != fault::NamesCulprit::Never;
    if (is_its_own && fault.domain.empty()) fault.domain = followed->domain_by(fault.source);
    return;
  }
  std::string domain = fault.domain;
  if (followed != nullptr) {
    // The isolation's module counts GPUs in the order in which they were first used.
    if (source.names_culprit == fault::NamesCulprit::Certainly) set_subject(fault, *followed);
    if (domain.empty()) domain = followed->domain_by(fault.source);
  } else if (domain.empty() && places.domain_of_server) {
    domain = places.domain_of_server(*fault.pid).value_or("");
  }
  // A process that it names may work in a domain of another GPU.
  if (fault::may_be_same(fault.gpu, {.number = places.number_of_domain(domain)})) fault.domain = domain;
}

}  // namespace

fault::Fault completed(fault::Fault fault, const Target* followed, const Places& places) {
  number(fault.gpu, places.gpus);
  place(fault, followed, places);
  locate(fault, places);
  return fault;
}

}  // namespace firebreak::watch
