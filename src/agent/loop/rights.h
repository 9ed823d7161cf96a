// SPDX-License-Identifier: Apache-2.0
/// Who may ask the agent for what (docs/use/security.md). Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

/// The socket by which a peer has come. It alone says what a peer is: root in a container that was given the
/// tenants' socket is a tenant.
enum class Entrance {
  Operators,  ///< everything
  Tenants,    ///< the tenants of the peer's own user
  Observers,  ///< the status alone, with all tenants
};

/// The peer that asks.
struct Asking {
  Entrance entrance = Entrance::Operators;
  uid_t user = 0;
  /// The only tenant that this connection has to do with, since it has named it; empty: none yet. Of a
  /// tenants' connection alone.
  std::string_view bound = {};
};

/// The right that a request needs.
enum class Need {
  Nothing,   ///< the answer holds only what is the peer's to know, or a token decides
  Member,    ///< the sender is a member of the tenant that it is about, and its handler looks which
  Owner,     ///< the tenant that it names is of the peer's user, or is none yet
  Operator,  ///< an operator's socket
};

/// Returns what a message needs; those that only the agent sends need nothing, and are refused by whoever
/// handles them.
Need need_of(const abi::Message& request);

/// The tenant that a request names; empty: none.
std::string_view tenant_named_by(const abi::Message& request);

/// `owner`: of the tenant that the request names; none: there is no such tenant. PermissionDenied, in one
/// line, where it is not for that peer to ask.
Status may_ask(const Asking& who, const abi::Message& request, const std::optional<uid_t>& owner);

/// True when what is of `owner` is for that peer to see; none: nobody's, which is the operators'.
bool may_see(const Asking& who, const std::optional<uid_t>& owner);

/// Names the request in one word, for the log: "place", "end_tenant". Empty: nothing that is written down
/// there.
std::string_view audited_name(const abi::Message& request);

}  // namespace firebreak::agent
