// SPDX-License-Identifier: Apache-2.0
/// Answers to who asked for something that is written down: never before it is.
#pragma once

#include "agent/loop/server.h"
#include "agent/tenants/records.h"
#include "agent/tenants/tenants.h"
#include "ground/base/result.h"

namespace firebreak::agent {

/// InvalidArgument: the process that asks for `what` is not the one of its tenant that may.
Status not_in_that_role(const char* what);

/// Belongs to the loop's thread.
class Answers {
 public:
  Answers(Tenants& tenants, Records& records) : tenants_(tenants), records_(records) {}

  /// `done`: what is answered where it went well.
  void give(Connection& connection, const Status& status, const abi::Done& done = {});
  /// Answers a process that asks again, under the same number, when the agent ended before it answered.
  void give_once(Connection& connection, const Status& status);
  /// True when it was answered so, by us or by an agent before.
  bool is_done(const Connection& connection) const;

 private:
  Tenants& tenants_;
  Records& records_;
};

}  // namespace firebreak::agent
