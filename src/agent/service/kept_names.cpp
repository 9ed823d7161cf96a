// SPDX-License-Identifier: Apache-2.0
#include "agent/service/kept_names.h"

#include <fmt/format.h>

namespace firebreak::agent {

Status KeptNames::room_for(std::span<const std::string> names) const {
  std::size_t more = 0;
  for (const std::string& name : names) more += names_.contains(name) ? 0 : name.size() + 1;
  if (more == 0 || bytes_ + more <= most_bytes) return {};
  return fail(ErrorCode::ResourceExhausted,
              fmt::format("the next agent could not be started: {} names of {} bytes are kept for it, and "
                          "no more than {} bytes can be",
                          names_.size(), bytes_, most_bytes),
              "end a tenant");
}

void KeptNames::add(const std::string& name) {
  if (names_.insert(name).second) bytes_ += name.size() + 1;
}

void KeptNames::remove(std::string_view name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return;
  bytes_ -= found->size() + 1;
  names_.erase(found);
}

}  // namespace firebreak::agent
