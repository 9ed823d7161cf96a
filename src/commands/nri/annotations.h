// SPDX-License-Identifier: Apache-2.0
/// Reads what a pod's annotations ask for one of its containers. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ground/base/result.h"

namespace firebreak::nri {

/// "a": each container of the pod has a seat in domain a; "any": in one that is chosen. "main=a,side=any":
/// these containers have.
inline constexpr const char* seat_annotation = "firebreak.dev/seat";
/// "main,spare": these two containers are the active and the standby of one tenant.
inline constexpr const char* pair_annotation = "firebreak.dev/pair";

enum class PairPart { Alone, Active, Standby };

struct Wish {
  PairPart part = PairPart::Alone;
  std::string domain;  ///< empty: any
  bool operator==(const Wish&) const = default;
};

using Annotations = std::map<std::string, std::string>;

/// Empty: this container is to have nothing of us. InvalidArgument: nobody can tell what is asked for,
/// whichever container it is.
Result<std::optional<Wish>> wish_of(const Annotations& annotations, const std::string& container);

}  // namespace firebreak::nri
