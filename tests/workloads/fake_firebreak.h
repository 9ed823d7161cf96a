// SPDX-License-Identifier: Apache-2.0
/// libfirebreak's C ABI without an agent: a test that links this plays the tenant's processes one after the
/// other, in one process. The ABI has no place for a context, so the fake is the one object below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "firebreak/firebreak.h"
#include "tests/workloads/gpu_memory.h"

namespace firebreak::workloads::testing {

struct FakeFirebreak {
  // What the test decides.
  fb_role role = FB_ROLE_ACTIVE;
  std::uint64_t ends_at_commit = ~std::uint64_t{0};  ///< this step's commit answers with `end` instead
  fb_status end = FB_ERROR_FENCED;
  bool finished = false;  ///< nobody will be promoted any more

  // What outlives a process of the tenant.
  std::map<std::string, std::vector<std::byte>> memory;
  std::vector<std::byte> state;
  std::uint64_t next_step = 0;

  // What the process that is played has done.
  std::vector<std::string> calls;  ///< without the prefix; repeated ones once
  std::map<std::string, Region> live;
  std::vector<std::uint64_t> wanted;  ///< steps still to do, as it said before each of its turns
  bool has_turn = false;              ///< since its last commit
};

/// The one fake.
FakeFirebreak& fake_firebreak();

}  // namespace firebreak::workloads::testing
