// SPDX-License-Identifier: Apache-2.0
/// Faults on purpose inside a tenant: passed on to it, and its word passed back. The tenant decides.
#include <fmt/format.h>

#include "agent/agent.h"

namespace firebreak::agent {

void Agent::inject(Connection& connection, const abi::Inject& request) {
  const auto active = active_of(request.tenant);
  if (!active) return answers_.give(connection, propagate(active));
  if (injections_.contains((*active)->id())) {
    return answers_.give(
        connection, fail(ErrorCode::Unavailable,
                         fmt::format("tenant '{}' already waits for the commit of a fault", request.tenant)));
  }
  injections_[(*active)->id()] = {connection.asker(), request.kind};
  (*active)->send(request);
}

void Agent::injected(Connection& connection, const abi::Injected& report) {
  const auto pending = injections_.find(connection.id());
  if (pending == injections_.end()) return;
  const std::string kind = pending->second.second;
  if (!report.refusal.empty()) return end_injection(connection.id(), abi::Refused{report.refusal});
  end_injection(connection.id(), report);
  abi::Event event;
  event.what = abi::EventKind::Injected;
  event.at_ns = report.raised_at_ns;
  if (const Tenant* tenant = tenants_.of(connection, &Tenant::active)) {
    event.tenant = tenant->name();
    event.domain = tenant->active.domain;
    event.pid = tenant->active.pid;
  }
  event.text = kind;
  teller_.tell(std::move(event));
}

void Agent::end_injection(std::uint64_t tenant_connection, const abi::Message& answer) {
  const auto pending = injections_.extract(tenant_connection);
  if (!pending) return;
  server_.answer(pending.mapped().first, answer);
}

}  // namespace firebreak::agent
