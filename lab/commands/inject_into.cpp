// SPDX-License-Identifier: Apache-2.0
#include "commands/inject_into.h"

#include "shared/link/agent_link.h"

namespace firebreak::commands {
namespace {

/// A tenant's step takes milliseconds to seconds.
constexpr Milliseconds commit_limit{120'000};

}  // namespace

Result<std::int64_t> inject_into(const std::string& socket_path, const std::string& tenant,
                                 const inject::Kind& kind, std::uint32_t commits) {
  const auto link = link::AgentLink::connect(socket_path);
  if (!link) return propagate(link);
  const auto answer = (*link)->ask(abi::Inject{tenant, std::string(kind.name), commits}, -1, commit_limit);
  if (!answer) return propagate(answer, "tenant '" + tenant + "'");
  const auto* injected = std::get_if<abi::Injected>(&answer->message);
  if (injected == nullptr) return fail(ErrorCode::Protocol, "the agent did not say what became of the fault");
  return injected->raised_at_ns;
}

}  // namespace firebreak::commands
