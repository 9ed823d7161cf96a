// SPDX-License-Identifier: Apache-2.0
/// How many descriptors the agent may have, who is promised how many, and who gets none any more: a tenant
/// that is let in has room for both of its processes, whenever they come.
#pragma once

#include <cstdint>
#include <string>

#include "agent/tenants/placements.h"
#include "agent/tenants/process.h"
#include "agent/tenants/shared_weights.h"
#include "agent/tenants/tenants.h"
#include "ground/base/result.h"

namespace firebreak::agent {

struct DescriptorUse {
  std::uint64_t limit = 0;
  std::uint64_t open = 0;
  std::uint64_t promised = 0;
  std::uint64_t reserve = 0;
  std::uint64_t of_a_pair = 0;
};

/// Belongs to the loop's thread.
class DescriptorBudget {
 public:
  struct Knows {
    Tenants& tenants;
    Placements& placements;
    Processes& processes;
    const SharedWeights& weights;
  };
  /// `limit`: of ours; 0: nobody counts them.
  DescriptorBudget(Knows knows, std::uint64_t limit) : at_(knows), limit_(limit) {}

  /// Begins: descriptors that are open now are promised to nobody, but for `kept`, which are counted with
  /// their tenants.
  void begin(std::size_t kept);

  DescriptorUse use() const;
  /// ResourceExhausted, with what to do: there is no room for another one.
  Status room_for_process_of(const std::string& tenant) const;
  Status room_for_allocation(const std::string& name) const;
  Status room_for_client(const std::string& tenant) const;
  /// True when it is a tenant, or one that comes.
  bool is_promised(const std::string& tenant) const;

 private:
  std::uint64_t promised() const;
  Status room_for(const std::string& whom, std::uint64_t promise, std::uint64_t at_once) const;

  Knows at_;
  std::uint64_t limit_;
  std::uint64_t at_start_ = 0;
};

}  // namespace firebreak::agent
