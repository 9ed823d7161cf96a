// SPDX-License-Identifier: Apache-2.0
/// What a container gets by its pod's annotations: the same as by a device request, and for a pair its part.
/// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "k8s/offer.h"
#include "nri/annotations.h"

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

/// "namespace/pod: container".
std::string described(const Newcomer& newcomer);

/// Empty: nothing is asked for it. InvalidArgument: an annotation that says nothing, or besides a device
/// request. NotFound: there is no such domain. Unavailable: its domain takes no clients now, or nobody knows;
/// kubelets ask again.
///
/// "any" is one of the domains that take clients, by the pod's uid: the same pod asks for the same. A pair's
/// domains are two of one GPU, by the uid alone: the other container is made at another time. Each of its
/// containers reaches both domains and begins in its own.
Result<std::optional<seats::SeatGrant>> seat_for(const k8s::Offer& offer, const Newcomer& newcomer);

}  // namespace firebreak::nri
