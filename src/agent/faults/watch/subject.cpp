// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/subject.h"

#include "agent/faults/fault/source_traits.h"

namespace firebreak::watch {

fault::Fault completed(fault::Fault fault, const Target* followed, const DomainOfServer& domain_of_server) {
  const fault::SourceTraits& source = fault::traits_of(fault.source);
  if (!fault.pid || !source.has_process_alone) return fault;
  if (followed != nullptr) {
    // The isolation's module counts GPUs in the order in which they were first used.
    if (source.names_culprit == fault::NamesCulprit::Certainly) set_subject(fault, *followed);
    if (fault.domain.empty()) fault.domain = followed->domain;
  } else if (fault.domain.empty() && domain_of_server) {
    fault.domain = domain_of_server(*fault.pid).value_or("");
  }
  return fault;
}

}  // namespace firebreak::watch
