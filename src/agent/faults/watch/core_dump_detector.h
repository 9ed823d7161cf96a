// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "agent/faults/fault/core_dump.h"
#include "agent/faults/watch/detector.h"
#include "agent/faults/watch/error_file.h"
#include "ground/base/line_splitter.h"

namespace firebreak::watch {

/// The detector of what CUDA says of an exception in its core dump mode, on the standard error of the process
/// whose kernel it was: in the file, where that is a regular one, or as somebody else has read it.
class CoreDumpDetector final : public Detector {
 public:
  /// One word for all that is missed of a process meanwhile.
  static constexpr Milliseconds between_gaps{1000};
  /// What a process says of others of its exceptions meanwhile is dropped unseen: it may say as much as it
  /// likes.
  static constexpr Milliseconds between_exceptions{1000};

  explicit CoreDumpDetector(const Workplace& workplace) : at_(workplace) {}

  Status follow(const Target& target, Parentage parentage) override;
  /// Its last words may come afterwards, from whoever reads them; so for a while they still count.
  void stop(pid_t pid) override;
  void read_now(pid_t pid) override;
  void note_output(pid_t pid, std::string_view text) override;
  void note_exception(pid_t pid, const fault::CoreDumpException& exception) override;

 private:
  struct Speaker {
    Target target;
    fault::CoreDumpReader core_dump;
    LineSplitter output;
    std::unique_ptr<ErrorFile> file;  ///< null: nothing is to be read there
    os::Watch forgetting;             ///< forgetting, after its end
    PossibleWriter writer;            ///< of others' lines
    std::optional<Monotonic> last_gap = {};
    std::optional<Monotonic> last_exception = {};
    bool kernel_follows = false;  ///< the last line was that exception's, and its kernel has one of its own
  };

  void follow_file(Speaker& speaker);
  void read_line(pid_t pid, std::string_view line);
  /// One exception a second, with the line behind it that names its kernel.
  bool is_looked_into(Speaker& speaker, const fault::CoreDumpException& exception) const;
  /// Another one that is followed, and may have written what that one's file says.
  std::optional<pid_t> other_writer(pid_t pid, Speaker& speaker);
  void miss(pid_t pid, std::uint64_t bytes);

  const Workplace& at_;
  std::map<pid_t, Speaker> speakers_;
};

}  // namespace firebreak::watch
