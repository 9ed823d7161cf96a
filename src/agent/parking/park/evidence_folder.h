// SPDX-License-Identifier: Apache-2.0
/// The folder with the core dumps of culprits and what is known of them: ID.cudacore, for cuda-gdb, and
/// ID.json. Each file can be read by the culprit's user and by root alone. The folder itself can be listed by
/// everybody who reaches it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "agent/parking/park/evidence.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::park {

struct EvidenceLimits {
  std::size_t exceptions = 16;
  std::uint64_t bytes = std::uint64_t{256} << 20;  ///< limit of all their files
};

/// The agent's. One thread's.
class EvidenceFolder {
 public:
  /// Gives a file of ours to its owner; empty: we do.
  using Give = std::function<Status(const os::Fd& file, uid_t user)>;
  explicit EvidenceFolder(std::string path, EvidenceLimits limits = {}, Give give = {})
      : path_(std::move(path)), limits_(limits), give_(std::move(give)) {}

  /// Lets others list it. It is there.
  Status open() const;
  /// Writes it, or writes it anew; the oldest beyond the limits are removed, but never this one.
  Status keep(const Evidence& evidence, uid_t owner) const;
  /// The same, with its dump.
  Status keep(const Evidence& evidence, uid_t owner, std::span<const std::byte> dump) const;

 private:
  void make_room(const std::string& id) const;

  std::string path_;
  EvidenceLimits limits_;
  Give give_;
};

/// Returns those of which there is a document, the oldest first.
std::vector<std::string> evidence_ids(const std::string& folder);
/// InvalidArgument: `id` is none. NotFound: there is no such one. PermissionDenied: it is another user's.
Result<Evidence> read_evidence(const std::string& folder, const std::string& id);
/// Returns the path of its dump; empty: there is none.
std::string dump_path_of(const std::string& folder, const std::string& id);

}  // namespace firebreak::park
