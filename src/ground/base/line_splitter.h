// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace firebreak {

/// Puts the lines of a text together that comes in pieces of any size.
class LineSplitter {
 public:
  /// A text without line ends must not eat the memory: what grows longer than this is passed over.
  static constexpr std::size_t longest_line = 16 * 1024;

  /// Calls back with each line that `piece` completes, without its line end.
  template <class OnLine>
  void take(std::string_view piece, OnLine on_line) {
    if (is_skipping_) {
      const std::size_t end = piece.find('\n');
      if (end == std::string_view::npos) return;
      piece.remove_prefix(end + 1);
      is_skipping_ = false;
    }
    unfinished_ += piece;
    std::size_t begin = 0;
    for (std::size_t end = unfinished_.find('\n'); end != std::string::npos;
         end = unfinished_.find('\n', begin)) {
      on_line(std::string_view(unfinished_).substr(begin, end - begin));
      begin = end + 1;
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > longest_line) unfinished_.clear();
  }
  /// Begins another text.
  void reset() {
    unfinished_.clear();
    is_skipping_ = false;
  }
  /// Passes over the rest of the line that has begun.
  void skip_line() {
    unfinished_.clear();
    is_skipping_ = true;
  }

 private:
  std::string unfinished_;
  bool is_skipping_ = false;
};

}  // namespace firebreak
