// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ground/base/line_splitter.h"
#include "ground/base/units.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

/// The lines that somebody appends to a file from now on; what it already holds is skipped. When it is cut
/// off in place, as log rotation by copying does, what it holds then is new. Whoever writes the file may let
/// it grow as fast as he likes: one turn of the loop reads a bounded part of it, and what is too far behind
/// is passed over.
class LineTail {
 public:
  /// Valid during the call, without its line end. Must not destroy the tail.
  using OnLine = std::function<void(std::string_view line)>;
  /// Takes how much was passed over.
  using OnSkipped = std::function<void(std::uint64_t bytes)>;

  /// Largest part that one turn of the loop reads.
  static constexpr std::uint64_t most_at_once = 64 * kib;
  /// Largest part that waits to be read, before all but the last of it is passed over.
  static constexpr std::uint64_t most_behind = 16 * mib;
  /// The last of it, which is read at once where it cannot wait.
  static constexpr std::uint64_t last_part = mib;

  LineTail(os::EventLoop& loop, os::Kernel& kernel, OnLine on_line, OnSkipped on_skipped = {})
      : loop_(loop), kernel_(kernel), on_line_(std::move(on_line)), on_skipped_(std::move(on_skipped)) {}

  /// The file of this name, whichever has it: it may appear later, and be replaced. NotFound: no such
  /// directory.
  Status follow_name(const std::string& directory, const std::string& name);
  /// The regular file behind `path`, and never another. Unsupported: it is none.
  Status follow_file(const std::string& path);
  /// Reads all that is there now, without waiting to be told that there is something; where that is more, its
  /// last part.
  void read_now();

 private:
  Status listen(os::FileWatch changes);
  void changed();
  void go_on();
  void go_on_later();
  bool begin_anew();
  void skip_unless_within(std::uint64_t bytes);
  bool read_to_end(std::uint64_t most);
  bool is_cut_off() const;
  void reopen();

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  OnLine on_line_;
  OnSkipped on_skipped_;
  std::string path_;  ///< path of what is followed by its name
  std::optional<os::FileWatch> changes_;
  os::Watch readable_;
  os::Watch next_turn_;
  bool was_replaced_ = false;  ///< another file has the name; first this one is read to its end
  os::Fd file_;
  std::uint64_t position_ = 0;  ///< bytes of `file_` that were read or skipped
  LineSplitter lines_;
};

}  // namespace firebreak::watch
