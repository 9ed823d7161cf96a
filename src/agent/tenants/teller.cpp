// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/teller.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "agent/loop/journal.h"

namespace firebreak::agent {
namespace {

/// Words of tenants are in it, and a message has an end.
constexpr std::size_t longest_text_bytes = 4096;

/// Events at these levels somebody has to look at.
spdlog::level::level_enum level_of(abi::EventKind what) {
  switch (what) {
    case abi::EventKind::Fault:
    case abi::EventKind::Incident:
    case abi::EventKind::Stray:
    case abi::EventKind::Promote:
    case abi::EventKind::Lost:
    case abi::EventKind::Endless:
    case abi::EventKind::NotFenced:
    case abi::EventKind::ShelfSilent:
      return spdlog::level::warn;
    default:
      return spdlog::level::info;
  }
}

void log(const abi::Event& event) {
  const spdlog::level::level_enum level = level_of(event.what);
  if (!spdlog::should_log(level)) return;
  log_with(
      level,
      {{"EVENT", std::string(to_string(event.what))},
       {"TENANT", event.tenant},
       {"DOMAIN", event.domain},
       {"PID", event.pid == 0 ? "" : std::to_string(event.pid)},
       {"SOURCE", event.source},
       {"FAULT", event.fault}},
      fmt::format("{} tenant={} domain={} pid={} source={} epoch={} step={} {}", to_string(event.what),
                  event.tenant, event.domain, event.pid, event.source, event.epoch, event.step, event.text));
}

}  // namespace

Status Teller::subscribe(std::uint64_t connection, const Asking& who) {
  const auto is_of_it = [&](const auto& each) {
    return each.second.entrance == who.entrance && each.second.user == who.user;
  };
  const bool is_bounded = who.entrance == Entrance::Tenants && !subscribers_.contains(connection);
  if (is_bounded &&
      std::cmp_greater_equal(std::ranges::count_if(subscribers_, is_of_it), subscribers_of_user_max)) {
    return fail(ErrorCode::ResourceExhausted,
                fmt::format("user {} is told of events on {} connections already", who.user,
                            subscribers_of_user_max));
  }
  subscribers_.insert_or_assign(connection, Asking{who.entrance, who.user});
  return {};
}

void Teller::tell(abi::Event event) {
  if (event.text.size() > longest_text_bytes) event.text.resize(longest_text_bytes);
  if (event.at_ns == 0) event.at_ns = to_ns(clock_.now());
  log(event);
  if (subscribers_.empty()) return;
  const std::string text = abi::encode(event);
  const auto owner = credentials_.owner_of(event.tenant);
  for (const auto& [id, who] : subscribers_) {
    if (!may_see(who, owner)) continue;
    if (Connection* connection = server_.find(id)) connection->send_encoded(text);
  }
}

}  // namespace firebreak::agent
