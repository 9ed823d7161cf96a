// SPDX-License-Identifier: Apache-2.0
#include "agent/teller.h"

#include <spdlog/spdlog.h>

namespace firebreak::agent {
namespace {

/// Words of tenants are in it, and a message has an end.
constexpr std::size_t longest_text_bytes = 4096;

}  // namespace

void Teller::tell(abi::Event event) {
  if (event.text.size() > longest_text_bytes) event.text.resize(longest_text_bytes);
  if (event.at_ns == 0) event.at_ns = to_ns(clock_.now());
  spdlog::info("{} tenant={} domain={} pid={} source={} epoch={} step={} {}", to_string(event.what),
               event.tenant, event.domain, event.pid, event.source, event.epoch, event.step, event.text);
  if (subscribers_.empty()) return;
  const std::string text = abi::encode(event);
  const auto owner = credentials_.owner_of(event.tenant);
  for (const auto& [id, who] : subscribers_) {
    if (!may_see(who, owner)) continue;
    if (Connection* connection = server_.find(id)) connection->send_encoded(text);
  }
}

}  // namespace firebreak::agent
