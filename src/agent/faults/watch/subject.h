// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/faults/watch/target.h"

namespace firebreak::watch {

/// The MPS domain whose server a process is; empty: it is none.
using DomainOfServer = std::function<std::optional<std::string>(pid_t)>;

/// The facts about the machine for whoever completes signals.
struct Places {
  /// SM faults name the server only.
  DomainOfServer domain_of_server = nullptr;
  /// The addresses of all GPUs that there are, as fault::pci_address() writes them, in the order in which
  /// NVML counts them. Any other address is no GPU of this machine. Empty: nobody knows them.
  std::vector<std::string> gpus = {};
  /// The number of the GPU that a domain has; empty: it may be any. Null: of all domains.
  std::function<std::optional<std::uint32_t>(const std::string& domain)> gpu_of_domain = nullptr;

  std::optional<std::uint32_t> number_of_domain(const std::string& domain) const {
    return gpu_of_domain && !domain.empty() ? gpu_of_domain(domain) : std::nullopt;
  }
};

/// A signal with what its source could not know: the one place where a fault gets its GPU, its domain and its
/// tenant. `followed`: the process that it names, null where nobody follows it. A server's name in an Xid
/// says which domain it is, unless that is on another GPU; whose process an Xid names is not certain, so that
/// it gets no tenant.
fault::Fault completed(fault::Fault fault, const Target* followed, const Places& places);

}  // namespace firebreak::watch
