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

/// What a request's number adds to an answer, at most.
constexpr std::size_t number_bytes = 64;

}  // namespace

void Agent::on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) {
  if (answers_.is_done(connection)) return answers_.give(connection, {});
  std::visit(
      Overloaded{
          [&](const abi::Join& request) { join(connection, request); },
          [&](const abi::Publish& request) {
            memory_.publish(connection, request,
                            std::make_shared<std::vector<os::Fd>>(std::move(descriptors)));
          },
          [&](const abi::GiveAllocation& request) { memory_.give_allocation(connection, request); },
          [&](const abi::Rejoin& request) { answers_.give(connection, rejoin(connection, request)); },
          [&](const abi::StandDown& request) {
            answers_.give_once(connection, stand_down(connection, request));
          },
          [&](const abi::Listen&) {
            clients_.take_listener(connection, std::make_shared<std::vector<os::Fd>>(std::move(descriptors)));
          },
          [&](const abi::GiveListener&) { clients_.give_listener(connection); },
          [&](const abi::NextConnection& request) { clients_.next_connection(connection, request); },
          [&](const abi::ReleaseConnection& request) { clients_.release(connection, request); },
          [&](const abi::Ready&) { ready(connection); },
          [&](const abi::Resumed& request) {
            answers_.give_once(connection, pairs_.resumed(connection, request));
          },
          [&](const abi::Finish&) { answers_.give_once(connection, pairs_.finish(connection)); },
          [&](const abi::Inject& request) { injections_.inject(connection, request); },
          [&](const abi::Injected& report) { injections_.injected(connection, report); },
          [&](const abi::Place& request) {
            if (auto placed = place(connection, request)) {
              connection.answer(*placed);
            } else {
              answers_.give(connection, propagate(placed));
            }
          },
          [&](const abi::Adopt& request) { answers_.give(connection, adopt_from(connection, request)); },
          [&](const abi::EndProcess& request) { answers_.give(connection, endings_.end_process(request)); },
          [&](const abi::EndTenant& request) { endings_.end_tenant(connection, request); },
          [&](const abi::Output& output) {
            detectors_.note_output(static_cast<pid_t>(output.pid), output.text);
          },
          [&](const abi::StatusRequest&) { report_status(connection); },
          [&](const abi::Subscribe&) {
            teller_.subscribe(connection.id());
            answers_.give(connection, {});
          },
          [&](const abi::HandOver& request) { answers_.give(connection, hand_over(request)); },
          [&](const abi::Stop&) {
            answers_.give(connection, {});
            loop_.stop();
          },
          [&](const auto&) { connection.answer(abi::Refused{"that is the agent's to say"}); },
      },
      message);
}

/// In a memory file where it is longer than a message.
void Agent::report_status(Connection& connection) const {
  const abi::StatusDocument report{status_json()};
  if (abi::encode(report).size() <= abi::wire_bytes_max - number_bytes) return connection.answer(report);
  if (!connection.numbers()) {
    return connection.answer(
        abi::Refused{"the status is too long for this program, which is older than the agent", false});
  }
  const auto file = os::memory_file_with(report.json);
  if (file) return connection.answer(abi::StatusDocument{}, file->get());
  connection.answer(abi::Refused{"the status: " + to_string(file.error()), true});
}

void Agent::on_closed(Connection& connection) {
  teller_.forget(connection.id());
  injections_.on_closed(connection);
  placements_.forget(connection.id());
  deaths_.on_closed(connection);
  endings_.on_closed(connection);
  records_.save();
}

void Agent::ready(Connection& connection) {
  Tenant* tenant = tenants_.of(connection, &Tenant::standby);
  if (tenant == nullptr) return answers_.give(connection, not_in_that_role("ready"));
  warm_standbys_.warmed_up(*tenant, connection.asker());
}

}  // namespace firebreak::agent
