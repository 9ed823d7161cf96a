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

/// What somebody may want to use this machine for.
enum class Use {
  Sharing,       ///< a real GPU, under MPS
  MemoryFaults,  ///< who caused them is told at once
  Exceptions,    ///< those inside of a kernel are seen
  Holding,       ///< of a dying tenant's descriptors
  Guard,
  Spares,
  Isolation,  ///< of memory faults in the driver
  SoftwareGpu,
  Page,  ///< of the characterization
};

/// One thing that was looked at.
struct Finding {
  Availability availability = Availability::Missing;
  Use use = Use::Sharing;
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
  /// The UUIDs of GPUs that are not in the compute mode DEFAULT, as NVML tells.
  std::vector<std::string> exclusive_gpus = {};
  /// Whether that works here.
  std::function<guard::ProbeResult(guard::Probed what)> probe_result;
};

/// This process's PATH, its LD_LIBRARY_PATH, and the loader's usual folders.
ExamineOptions usual_places(const std::string& software_gpu_library);

/// Looks at everything; changes nothing (it opens device nodes and closes them again), but for what the
/// trials leave.
std::vector<Finding> examine(os::Kernel& kernel, const ExamineOptions& options);

/// Whether this machine is good for a use.
struct UseVerdict {
  Use use = Use::Sharing;
  Availability answer = Availability::Good;
  std::string because;  ///< what is missing or limited, the first of it; empty where nothing is
};

/// One for each use, in their order.
std::vector<UseVerdict> verdicts_of(const std::vector<Finding>& findings);

/// "share a real GPU between tenants".
const char* to_string(Use use);

/// The findings and the verdicts as text for a terminal, ending with a newline.
std::string to_text(const std::vector<Finding>& findings);
/// The same for programs: {"findings": [...], "verdicts": [...], "usable": `usable`}.
std::string to_json(const std::vector<Finding>& findings, bool usable);

/// The driver's version and kind from /proc/driver/nvidia/version; empty when the text has no version.
struct DriverVersion {
  std::string number;
  bool open_modules = false;
};
std::optional<DriverVersion> parse_driver_version(const std::string& text);

}  // namespace firebreak::cli
