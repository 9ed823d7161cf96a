// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/faults/watch/target.h"

namespace firebreak::watch {

/// The MPS domain whose server a process is; empty: it is none.
using DomainOfServer = std::function<std::optional<std::string>(pid_t)>;

/// A signal with what its source could not know: the one place where a fault gets its domain and its tenant.
/// `followed`: the process that it names, null where nobody follows it. A server's name in an Xid says which
/// domain it is; whose process an Xid names is not certain, so that it gets no tenant.
fault::Fault completed(fault::Fault fault, const Target* followed, const DomainOfServer& domain_of_server);

}  // namespace firebreak::watch
