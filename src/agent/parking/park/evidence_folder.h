// SPDX-License-Identifier: Apache-2.0
/// The folder with the core dumps of culprits and what is known of them: ID.cudacore, for cuda-gdb, and
/// ID.json. Each file can be read by the culprit's user and by root alone, and is written by nobody but the
/// agent. The folder itself can be listed by everybody who reaches it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/parking/park/evidence.h"
#include "ground/base/result.h"
#include "ground/os/owned_file.h"

namespace firebreak::park {

struct EvidenceLimits {
  std::size_t exceptions = 16;
  std::uint64_t bytes = std::uint64_t{256} << 20;  ///< limit of all their files
};

/// The agent's. One thread's.
class EvidenceFolder {
 public:
  explicit EvidenceFolder(std::string path, EvidenceLimits limits = {})
      : path_(std::move(path)), limits_(limits) {}

  /// Lets others list it. It is there. Unsupported: no user can be let read anything in it.
  Status open() const;
  /// Writes it, or writes it anew, for that user. Beyond the limits somebody's oldest are removed, but never
  /// this one, and nobody's who has no more than his part: the limits divided by the number of users.
  Status keep(const Evidence& evidence, uid_t user) const;
  /// Its dump, which is there once that is finished. make_room() follows.
  Result<os::OwnedFile> begin_dump(const std::string& id, uid_t user) const;
  /// Removes what is beyond the limits, but nothing of that id.
  void make_room(const std::string& id) const;

 private:
  std::string path_;
  EvidenceLimits limits_;
};

/// Returns those of which there is a document, the oldest first.
std::vector<std::string> evidence_ids(const std::string& folder);
/// InvalidArgument: `id` is none. NotFound: there is no such one. PermissionDenied: it is another
/// user's, or nobody can be let read it.
Result<Evidence> read_evidence(const std::string& folder, const std::string& id);
/// Returns the path of its dump; empty: there is none.
std::string dump_path_of(const std::string& folder, const std::string& id);

}  // namespace firebreak::park
