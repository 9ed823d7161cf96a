// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/answers.h"

#include <fmt/format.h>

namespace firebreak::agent {

Status not_in_that_role(const char* what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("{} is not for a process in this role", what));
}

/// The request is written down before it is answered: who has been answered relies on it.
void Answers::give(Connection& connection, const Status& status, const abi::Done& done) {
  records_.save_for(connection);
  if (status) {
    connection.answer(done);
    return;
  }
  const ErrorCode why = status.error().code;
  connection.answer(
      abi::Refused{to_string(status.error()), why == ErrorCode::ResourceExhausted, why == ErrorCode::NotYet});
}

void Answers::give_once(Connection& connection, const Status& status) {
  Member* member = status ? tenants_.member_of(connection) : nullptr;
  if (member != nullptr) member->done = connection.asker().number;
  give(connection, status);
}

bool Answers::is_done(const Connection& connection) const {
  const std::uint64_t number = connection.asker().number;
  const Member* member = number == 0 ? nullptr : tenants_.member_of(connection);
  return member != nullptr && member->done == number;
}

}  // namespace firebreak::agent
