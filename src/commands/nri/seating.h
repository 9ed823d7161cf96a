// SPDX-License-Identifier: Apache-2.0
/// A container gets this by its pod's annotations: the same as by a device request, and for a pair its part.
/// The function is pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "commands/k8s/offer.h"
#include "commands/nri/annotations.h"
#include "ground/base/result.h"

namespace firebreak::nri {

/// A container that is about to be made.
struct Newcomer {
  std::string pod_namespace;
  std::string pod;
  std::string pod_uid;
  std::string container;
  Annotations annotations;               ///< its pod's
  std::vector<std::string> environment;  ///< NAME=VALUE
  std::vector<std::string> mounted_at;   ///< paths in the container
};

/// The domains in which tenants have their actives, by the tenants' names.
using Actives = std::map<std::string, std::string>;

/// "namespace/pod: container", as one line.
std::string described(const Newcomer& newcomer);

/// Empty: nothing is asked for it. InvalidArgument: an annotation that says nothing, or besides a device
/// request. NotFound: there is no such domain. Unavailable: its domain takes no clients now, or nobody knows;
/// kubelets ask again.
///
/// "any" is one of the domains that take clients, by the pod's uid: the same pod asks for the same. A pair's
/// domains are two of one GPU, by the uid alone: the other container is made at another time. Each of its
/// containers reaches both domains and begins in its own. Where the tenant has its active in the other's, as
/// after that has taken over, both are the standby.
Result<std::optional<seats::SeatGrant>> seat_for(const k8s::Offer& offer, const Newcomer& newcomer,
                                                 const Actives& actives = {});

/// This is about a container that is there already: its pod's annotations ask for a seat, or cannot be
/// understood, and it has none.
bool lacks_its_seat(const Newcomer& made);

}  // namespace firebreak::nri
