// SPDX-License-Identifier: Apache-2.0
/// What tenants and the firebreak command ask of the agent, one function a message.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/agent.h"

namespace firebreak::agent {
namespace {

/// So that std::visit takes one lambda a message.
template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};

}  // namespace

void Agent::on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) {
  std::visit(
      Overloaded{
          [&](const abi::Join& request) { join(connection, request); },
          [&](const abi::Publish& request) {
            answer(connection, publish(connection, request, std::move(descriptors)));
          },
          [&](const abi::Rejoin& request) { answer(connection, rejoin(connection, request)); },
          [&](const abi::StandDown&) { answer(connection, stand_down(connection)); },
          [&](const abi::Listen&) { answer(connection, take_listener(connection, std::move(descriptors))); },
          [&](const abi::GiveListener&) { give_listener(connection); },
          [&](const abi::NextConnection& request) { next_connection(connection, request); },
          [&](const abi::Release& request) { answer(connection, release(connection, request)); },
          [&](const abi::Ready&) { answer(connection, ready(connection)); },
          [&](const abi::Resumed& request) { answer(connection, resumed(connection, request)); },
          [&](const abi::Finish&) { answer(connection, finish(connection)); },
          [&](const abi::Inject& request) { inject(connection, request); },
          [&](const abi::Injected& report) { injected(connection, report); },
          [&](const abi::Place& request) {
            if (auto placed = place(connection, request)) {
              connection.send(*placed);
            } else {
              answer(connection, propagate(placed));
            }
          },
          [&](const abi::Adopt& request) { answer(connection, adopt_from(connection, request)); },
          [&](const abi::EndProcess& request) { answer(connection, end_process(request)); },
          [&](const abi::EndTenant& request) { end_tenant(connection, request); },
          [&](const abi::Output& output) {
            detectors_.note_output(static_cast<pid_t>(output.pid), output.text);
          },
          [&](const abi::StatusRequest&) { connection.send(abi::Report{status_json()}); },
          [&](const abi::Subscribe&) {
            subscribers_.insert(connection.id());
            answer(connection, {});
          },
          [&](const abi::HandOver& request) { answer(connection, hand_over(request)); },
          [&](const abi::Stop&) {
            answer(connection, {});
            loop_.stop();
          },
          [&](const auto&) { connection.send(abi::Refused{"that is the agent's to say"}); },
      },
      message);
}

/// What was asked for is written down first: who has been answered relies on it.
void Agent::answer(Connection& connection, const Status& status) {
  save();
  if (status) {
    connection.send(abi::Done{});
    return;
  }
  const bool used_up = status.error().code == ErrorCode::ResourceExhausted;
  connection.send(abi::Refused{to_string(status.error()), used_up});
}

void Agent::on_closed(Connection& connection) {
  subscribers_.erase(connection.id());
  end_injection(connection.id(), abi::Refused{"the tenant ended first"});
  forget_placements(connection.id());
  std::erase_if(farewells_, [&](const Farewell& each) { return each.connection == connection.id(); });
  std::erase_if(waiting_joins_, [&](const WaitingJoin& each) { return each.connection == connection.id(); });
  for (auto& [name, tenant] : tenants_) {
    // An active without its connection still serves; its end is seen by its pidfd. A standby without one
    // cannot take over.
    for (Member* member : {&tenant->active, &tenant->old_active}) {
      if (member->connection != connection.id()) continue;
      member->connection = 0;
      end_unless_it_serves(member->pid);
    }
    if (tenant->standby.connection != connection.id()) continue;
    tenant->standby.connection = 0;
    advance(*tenant, pair::EventType::StandbyExited);
    await_return(*tenant);
  }
  save();
}

Status Agent::ready(Connection& connection) {
  Tenant* tenant = tenant_of(connection, &Tenant::standby);
  if (tenant == nullptr) return not_in_that_role("ready");
  warmed_up(*tenant);
  return {};
}

void Agent::warmed_up(Tenant& tenant) {
  domains_.refresh_servers();
  abi::Event event;
  event.what = "ready";
  event.tenant = tenant.name();
  event.domain = tenant.standby.domain;
  event.pid = tenant.standby.pid;
  tell(std::move(event));
  advance(tenant, pair::EventType::StandbyReady);
}

Status Agent::resumed(Connection& connection, const abi::Resumed& request) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("resumed");
  abi::Event event;
  event.what = "resumed";
  event.step = request.next_step;
  event.at_ns = tenant->page().resumed_at_ns.load(std::memory_order_relaxed);
  event.tenant = tenant->name();
  event.domain = tenant->active.domain;
  event.pid = tenant->active.pid;
  event.epoch = tenant->pair.epoch;
  tell(std::move(event));
  advance(*tenant, pair::EventType::Resumed);
  follow_progress(*tenant);
  return {};
}

Status Agent::finish(Connection& connection) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("finish");
  abi::Event event;
  event.what = "finished";
  event.tenant = tenant->name();
  event.pid = tenant->active.pid;
  event.epoch = tenant->pair.epoch;
  event.step = tenant->committed();
  tell(std::move(event));
  advance(*tenant, pair::EventType::ActiveFinished);
  return {};
}

}  // namespace firebreak::agent
