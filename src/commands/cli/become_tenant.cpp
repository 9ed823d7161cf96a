// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/become_tenant.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "commands/cli/agent_request.h"
#include "ground/os/become.h"
#include "ground/os/event_loop.h"
#include "ground/os/self.h"

namespace firebreak::cli {
namespace {

struct Asked {
  Result<link::Answer> answer = fail(ErrorCode::Internal, "the agent was not asked");
  std::unique_ptr<link::AgentLink> link;
};

/// Waits for the answer. Signals do to us meanwhile what they would do to the program.
Asked ask(AgentRequest::Question question, std::unique_ptr<link::AgentLink> first) {
  Asked asked;
  const auto loop = os::EventLoop::create();
  if (!loop) return {propagate(loop), nullptr};
  const AgentRequest request(**loop, std::move(question), std::move(first),
                             [&](Result<link::Answer> answer, std::unique_ptr<link::AgentLink> link) {
                               asked = {std::move(answer), std::move(link)};
                               (*loop)->stop();
                             });
  (*loop)->run();
  return asked;
}

int complain_of(const Error& error) {
  (void)complain(to_string(error));
  return own_failure_status;
}

int complain_of_start(const Error& error) {
  (void)complain(to_string(error));
  return status_of_failed_start(error);
}

}  // namespace

int status_of_failed_start(const Error& error) { return error.code == ErrorCode::NotFound ? 127 : 126; }

int become_tenant(const TenantOptions& options, const std::string& file, abi::Role role,
                  bool tells_on_stderr) {
  AgentRequest::Question where{options.socket_path, place_question(options, role), options.domain_patience};
  where.not_yet_patience = options.domain_patience;
  where.on_not_yet = [](const std::string& why) { fmt::print(stderr, "firebreak: waits: {}\n", why); };
  Asked placed = ask(std::move(where), nullptr);
  if (!placed.answer) return complain_of(placed.answer.error());
  const auto* place = std::get_if<abi::Placed>(&placed.answer->message);
  if (place == nullptr) return complain_of({ErrorCode::Protocol, "the agent did not say where to run", {}});
  std::vector<std::string> notes;
  const auto start = start_request(options, *place, notes);
  if (!start) return complain_of(start.error());
  // By the next agent where this one is gone before it has answered: it knows where the process was told to
  // run. One that has done so already says so again.
  AgentRequest::Question follow{options.socket_path, adopt_question(options, role, os::own_pid()),
                                Milliseconds(place->agent_returns_ms)};
  const Asked adopted = ask(std::move(follow), std::move(placed.link));
  if (!adopted.answer) return complain_of(adopted.answer.error());
  for (const std::string& note : notes) {
    (void)adopted.link->tell(abi::Output{os::own_pid(), note + "\n"});
    if (tells_on_stderr) fmt::print(stderr, "firebreak: {}\n", note);
  }
  return complain_of_start(os::become_program(file, options.command, start->environment).error());
}

}  // namespace firebreak::cli
