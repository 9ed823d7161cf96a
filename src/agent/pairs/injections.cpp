// SPDX-License-Identifier: Apache-2.0
#include "agent/pairs/injections.h"

#include <fmt/format.h>

namespace firebreak::agent {

void Injections::inject(Connection& connection, const abi::Inject& request) {
  const auto active = at_.tenants.active_of(request.tenant, at_.server);
  if (!active) return at_.answers.give(connection, propagate(active));
  if (pending_.contains((*active)->id())) {
    return at_.answers.give(
        connection, fail(ErrorCode::Unavailable,
                         fmt::format("tenant '{}' already waits for the commit of a fault", request.tenant)));
  }
  pending_[(*active)->id()] = {connection.asker(), request.kind};
  (*active)->send(request);
}

void Injections::injected(Connection& connection, const abi::Injected& report) {
  const auto pending = pending_.find(connection.id());
  if (pending == pending_.end()) return;
  const std::string kind = pending->second.kind;
  if (!report.refusal.empty()) return end(connection.id(), abi::Refused{report.refusal});
  end(connection.id(), report);
  abi::Event event;
  event.what = abi::EventKind::Injected;
  event.at_ns = report.raised_at_ns;
  if (const Tenant* tenant = at_.tenants.of(connection, &Tenant::active)) {
    event.tenant = tenant->name();
    event.domain = tenant->active.domain;
    event.pid = tenant->active.pid;
  }
  event.text = kind;
  at_.teller.tell(std::move(event));
}

void Injections::on_closed(const Connection& connection) {
  end(connection.id(), abi::Refused{"the tenant ended first"});
}

void Injections::end(std::uint64_t tenant_connection, const abi::Message& answer) {
  const auto pending = pending_.extract(tenant_connection);
  if (!pending) return;
  at_.server.answer(pending.mapped().asker, answer);
}

}  // namespace firebreak::agent
