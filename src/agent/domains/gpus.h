// SPDX-License-Identifier: Apache-2.0
/// How the machine's GPUs are, by the driver's own words: a domain of one that needs a reset takes nobody
/// until the driver or an operator says that it is well again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/faults/fault/fault.h"
#include "agent/loop/surroundings.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::agent {

/// One that is not well, as it is kept for the next agent.
struct KeptGpu {
  std::string pci;
  std::string needs;   ///< fault::to_string(): "reset"
  std::string reason;  ///< "Xid 79, RESTART_BM"
  friend bool operator==(const KeptGpu&, const KeptGpu&) = default;
};

/// Belongs to the loop's thread.
class Gpus {
 public:
  struct Gpu {
    MachineGpu is;
    fault::DeviceNeed needs = fault::DeviceNeed::Nothing;
    std::string reason = {};                   ///< of that need
    std::optional<Monotonic> since_well = {};  ///< when its last need was over
  };

  /// `all`: in the order in which NVML counts them. `domains` outlives it.
  Gpus(const std::vector<MachineGpu>& all, Domains& domains);

  /// Once the domains are there; with what the agent before knew.
  void begin();
  void restore(const std::vector<KeptGpu>& kept);

  const std::vector<Gpu>& all() const { return gpus_; }
  std::vector<KeptGpu> kept() const;
  /// The number of the GPU that a domain has; empty: it may be any.
  std::optional<std::uint32_t> number_of(std::string_view domain) const;
  /// Whether what a signal says of its GPU can be true of that domain.
  bool may_be_in(const fault::Fault& fault, std::string_view domain) const;
  /// Whether one of our domains may be on it.
  bool is_ours(const fault::Gpu& gpu) const;

  /// In words, where the signal changes how a GPU is; empty: it does not. NVIDIA's word for what to do is in
  /// them. What is less than a GPU needs already changes nothing.
  std::string note(const fault::Fault& fault);
  /// An operator says that a GPU is well again: by its UUID or how that begins, its address or its number. In
  /// words; NotFound, with those that there are.
  Result<std::string> recover(const std::string& named);

 private:
  std::string set(std::size_t number, fault::DeviceNeed needs, const std::string& reason, Monotonic when);
  std::vector<std::string> domains_on(std::size_t number) const;
  std::string name_of(std::size_t number) const;

  Domains& domains_;
  std::vector<Gpu> gpus_;
  std::map<std::string, std::optional<std::uint32_t>, std::less<>> number_of_;  ///< by domain
};

}  // namespace firebreak::agent
