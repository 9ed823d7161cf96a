// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>

#include "agent/service/shelf_queue.h"
#include "agent/tenants/answers.h"
#include "agent/tenants/vault/vault.h"

namespace firebreak::agent {

/// Answers who asks for memory with its descriptor, from a shelf where it lies there. Belongs to the loop's
/// thread.
class AllocationGiver {
 public:
  AllocationGiver(ShelfQueue& shelves, Server& server, Answers& answers)
      : shelves_(shelves), server_(server), answers_(answers) {}

  /// Largest number of one process's questions that wait for a shelf; libfirebreak asks one at a time.
  static constexpr std::size_t most_questions = 64;

  /// `shelf_name`: under which a shelf has it.
  void give(Connection& connection, const vault::Entry& entry, bool is_shared, const std::string& shelf_name);

 private:
  ShelfQueue& shelves_;
  Server& server_;
  Answers& answers_;
  std::map<pid_t, std::size_t> questions_;
};

}  // namespace firebreak::agent
