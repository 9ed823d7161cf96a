// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/line_splitter.h"
#include "os/event_loop.h"
#include "os/kernel.h"

namespace firebreak::watch {

/// The lines that somebody appends to a file from now on; what it already holds is skipped. When it is cut
/// off in place, as log rotation by copying does, what it holds then is new.
class LineTail {
 public:
  /// Valid during the call, without its line end. Must not destroy the tail.
  using OnLine = std::function<void(std::string_view line)>;

  LineTail(os::EventLoop& loop, os::Kernel& kernel, OnLine on_line)
      : loop_(loop), kernel_(kernel), on_line_(std::move(on_line)) {}

  /// The file of this name, whichever has it: it may appear later, and be replaced. NotFound: no such
  /// directory.
  Status follow_name(const std::string& directory, const std::string& name);
  /// The regular file behind `path`, and never another. Unsupported: it is none.
  Status follow_file(const std::string& path);
  /// Without waiting to be told that there is something.
  void read_now();

 private:
  Status listen(os::FileWatch changes);
  void changed();
  bool is_cut_off() const;
  void reopen();

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  OnLine on_line_;
  std::string path_;  ///< of what is followed by its name
  std::optional<os::FileWatch> changes_;
  os::Watch readable_;
  os::Fd file_;
  std::uint64_t position_ = 0;  ///< bytes of `file_` that were read or skipped
  LineSplitter lines_;
};

}  // namespace firebreak::watch
