// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

/// A domain as one may be placed in it.
struct Site {
  std::string domain;
  std::string gpu;  ///< UUID; empty: the only one
  bool takes_clients = true;
  std::string why_not;      ///< reason in a word, where it takes none
  std::size_t actives = 0;  ///< actives that run there
};

struct PlacementWish {
  abi::Role role = abi::Role::Active;
  std::string other_half;  ///< the domain of the tenant's other process; empty: it has none yet
  std::string gpu;         ///< UUID or how one begins; empty: any
  std::vector<std::string> machine_gpus = {};  ///< UUIDs of all that there are; empty: they are not known
};

/// Chooses the domain in which a process is to run. Actives share the first domain of a GPU that takes
/// clients, on the GPU that has the fewest of them; the two halves of a tenant run on one GPU and never in
/// one domain. Pure. NotFound: no such GPU. NotYet, with each domain's reason: none takes anybody now.
/// Unavailable: there is none for it, and will not be.
Result<std::string> choose_domain(const std::vector<Site>& sites, const PlacementWish& wish);

}  // namespace firebreak::agent
