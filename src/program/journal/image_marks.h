// SPDX-License-Identifier: Apache-2.0
/// Reads which steps are in an image, and whose they are, as its journal's two marks say.
#pragma once

#include <optional>

#include "shared/abi/commit_journal.h"

namespace firebreak::journal {

/// Copied and verified.
struct MarksFound {
  std::optional<abi::ImageMark> newest;
  bool has_blank = false;      ///< one that was never written
  unsigned int free_slot = 0;  ///< slot to be written next: not the newest
};

MarksFound read_marks(const abi::CommitJournal& journal);

}  // namespace firebreak::journal
