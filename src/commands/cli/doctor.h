// SPDX-License-Identifier: Apache-2.0
/// What this machine offers for a shared GPU, what is missing, and for what.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ground/os/kernel.h"
#include "shared/guard_page/probe_result.h"

namespace firebreak::cli {

enum class Availability {
  Good,     ///< there, and usable by this user
  Limited,  ///< works for part of what it is needed for
  Missing,
};

/// One thing that was looked at.
struct Finding {
  Availability availability = Availability::Missing;
  std::string name;    ///< e.g. "/dev/kmsg"
  std::string detail;  ///< what was found, or why it cannot be used
  std::string needed_for;
  std::string remedy;  ///< what to do; empty when nothing needs to be done
};

/// Where to look for what does not come from the kernel.
struct ExamineOptions {
  /// Where PATH finds a program.
  std::function<std::optional<std::string>(const std::string&)> find_program;
  /// Folders that may hold libcuda.so.1, in the loader's order.
  std::vector<std::string> library_folders;
  /// The software GPU's libcuda.so.1.
  std::string software_gpu_library;
  /// Whether this build has the page of `firebreak-lab characterize --html`.
  bool has_page = true;
  /// Whether that works here.
  std::function<guard::ProbeResult(guard::Probed what)> probe_result;
};

/// This process's PATH, its LD_LIBRARY_PATH, and the loader's usual folders.
ExamineOptions usual_places(const std::string& software_gpu_library);

/// Looks at everything; changes nothing (it opens device nodes and closes them again), but for what the
/// trials leave.
std::vector<Finding> examine(os::Kernel& kernel, const ExamineOptions& options);

/// The findings as text for a terminal, ending with a newline.
std::string to_text(const std::vector<Finding>& findings);

/// The driver's version and kind from /proc/driver/nvidia/version; empty when the text has no version.
struct DriverVersion {
  std::string number;
  bool open_modules = false;
};
std::optional<DriverVersion> parse_driver_version(const std::string& text);

}  // namespace firebreak::cli
