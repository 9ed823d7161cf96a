// SPDX-License-Identifier: Apache-2.0
/// Bounds a log that other programs append to and never reopen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace firebreak::os {

struct LogLimits {
  std::uint64_t size_bytes = std::uint64_t{16} << 20;  ///< of the log itself, more or less
  std::size_t old_files = 4;                           ///< PATH.1 is the youngest
};

/// When the log holds more than the limit, moves its older part, whole lines, to PATH.1 (PATH.1 to PATH.2,
/// and so on) and gives the blocks of that part back: the file keeps its length and begins with a hole.
/// Whoever appends goes on undisturbed, and whoever reads from a position is still there: no line is lost or
/// comes twice, which neither renaming (the writer goes with the file) nor cutting off at zero (what is
/// written between the copy and the cut) can say. A reader has to have read the older part: the youngest
/// quarter of the limit stays for one that is behind. Where the filesystem knows no holes (Unsupported)
/// nothing is done. Returns whether anything was. Writers must append (O_APPEND); one caller at a time.
Result<bool> rotate_in_place(const std::string& path, const LogLimits& limits);

/// The log becomes PATH.1, for when nobody writes to it: the next writer begins a new one. Fine when there is
/// none, or it is empty.
Status rotate_away(const std::string& path, const LogLimits& limits);

/// The last bytes of a file, at most `size_bytes`.
Result<std::string> read_tail(const std::string& path, std::size_t size_bytes);

}  // namespace firebreak::os
