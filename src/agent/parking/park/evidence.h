// SPDX-License-Identifier: Apache-2.0
/// The document of one exception in a parked domain, beside its core dump, for `firebreak report`. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/faults/fault/core_dump.h"
#include "ground/base/result.h"

namespace firebreak::park {

struct Moment {
  double ms = 0;  ///< time after the first word of the exception
  std::string what;
};

/// Somebody who was in the domain.
struct Affected {
  std::string name;    ///< its tenant
  std::string became;  ///< the outcome, in words
};

struct Evidence {
  std::string id;    ///< names its files; ids in the order of their names are in the order of time
  std::string when;  ///< of the first word: "2026-11-24T18:35:12Z"
  std::string name;  ///< name of the culprit: its tenant and pid, or its pid
  std::string domain;
  pid_t pid = 0;
  fault::CoreDumpException exception;
  std::vector<Moment> timeline;
  std::string fault = {};          ///< the fault that it is of; empty: that is not over yet
  std::vector<Affected> affected;  ///< tenants, as the agent's account of the fault has them
  std::uint64_t dump_bytes = 0;    ///< 0: there is no dump, or not yet
  bool is_cut = false;             ///< the dump was longer than is kept
};

/// Letters, digits, '.', '_' and '-', 128 at most, and none that begins with '.': no path leads out of a
/// folder.
bool is_evidence_id(std::string_view text);

std::string to_json(const Evidence& evidence);
/// Protocol: it is none. Whatever the text holds, what comes of it can be printed to a terminal: its owner
/// may have written it, who is not who reads it.
Result<Evidence> evidence_from(std::string_view json);
/// Writes it for people. `dump_path`: empty where there is none.
std::string to_text(const Evidence& evidence, const std::string& dump_path);

}  // namespace firebreak::park
