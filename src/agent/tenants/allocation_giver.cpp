// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/allocation_giver.h"

#include <fmt/format.h>

#include <vector>

namespace firebreak::agent {

void AllocationGiver::give(Connection& connection, const vault::Entry& entry, bool is_shared,
                           const std::string& shelf_name) {
  const abi::Allocation given{entry.name, entry.address, entry.size_bytes, entry.memory, is_shared};
  if (!entry.is_put_away) return connection.answer(given, entry.descriptor.get());
  const pid_t pid = connection.peer().pid;
  if (questions_[pid] >= most_questions) {
    return answers_.give(connection, fail(ErrorCode::ResourceExhausted,
                                          "too much of the tenant's memory is on its way to this process"));
  }
  ++questions_[pid];
  shelves_.get(
      {shelf_name}, [this, given, pid, asker = connection.asker()](const std::vector<os::Fd>& found) {
        if (--questions_[pid] == 0) questions_.erase(pid);
        server_.handle(asker, [&](Connection& then) {
          if (found.front()) return then.answer(given, found.front().get());
          answers_.give(
              then, fail(ErrorCode::NotFound, fmt::format("the tenant's memory '{}' is lost", given.name)));
        });
      });
}

}  // namespace firebreak::agent
