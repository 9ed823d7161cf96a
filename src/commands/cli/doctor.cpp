// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/doctor.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "agent/faults/watch/isolation.h"
#include "ground/os/self.h"

namespace firebreak::cli {
namespace {

constexpr unsigned cap_sys_ptrace = 19;
constexpr const char* real_gpu = "everything on a real GPU";

Finding good(Use use, std::string name, std::string detail, std::string needed_for) {
  return {Availability::Good, use, std::move(name), std::move(detail), std::move(needed_for), {}};
}

Finding limited(Use use, std::string name, std::string detail, std::string needed_for, std::string remedy) {
  return {Availability::Limited, use, std::move(name), std::move(detail), std::move(needed_for),
          std::move(remedy)};
}

Finding missing(Use use, std::string name, std::string detail, std::string needed_for, std::string remedy) {
  return {Availability::Missing, use, std::move(name), std::move(detail), std::move(needed_for),
          std::move(remedy)};
}

Finding examine_driver(os::Kernel& kernel) {
  const auto text = kernel.read_file("/proc/driver/nvidia/version");
  const auto version = text ? parse_driver_version(*text) : std::nullopt;
  if (!version) {
    return missing(Use::Sharing, "NVIDIA driver", "not loaded", real_gpu,
                   "install and load the driver, or use the software GPU (FIREBREAK_GPU=soft)");
  }
  Finding finding = good(Use::Sharing, "NVIDIA driver",
                         version->number + (version->open_modules ? ", open kernel modules" : ""), real_gpu);
  if (version->open_modules) return finding;
  finding.availability = Availability::Limited;
  finding.use = Use::Isolation;
  finding.detail += ", closed kernel modules";
  finding.remedy = "use the open kernel modules if memory faults are to be isolated inside the driver";
  return finding;
}

bool is_loaded(const std::string& modules, const std::string& name) {
  return modules.starts_with(name + " ") || modules.find("\n" + name + " ") != std::string::npos;
}

std::vector<Finding> examine_modules(os::Kernel& kernel) {
  const std::string modules = kernel.read_file("/proc/modules").value_or("");
  std::vector<Finding> findings;
  const auto look = [&](const std::string& name, const std::string& needed_for, const std::string& remedy) {
    if (is_loaded(modules, name)) {
      findings.push_back(good(Use::Sharing, "module " + name, "loaded", needed_for));
    } else {
      findings.push_back(missing(Use::Sharing, "module " + name, "not loaded", needed_for, remedy));
    }
  };
  look("nvidia", real_gpu, "modprobe nvidia");
  look("nvidia_uvm", real_gpu, "nvidia-modprobe -u -c 0");
  return findings;
}

Finding examine_node(os::Kernel& kernel, Use use, const std::string& path, int flags,
                     const std::string& needed_for, const std::string& when_absent,
                     const std::string& when_refused) {
  const auto opened = kernel.open(path, flags | O_NONBLOCK);
  if (opened) return good(use, path, "can be opened", needed_for);
  const bool refused = opened.error().code == ErrorCode::PermissionDenied;
  return missing(use, path, opened.error().message, needed_for, refused ? when_refused : when_absent);
}

/// "nvidia0", "nvidia1", ... as they are in /dev; at least the first, so that its absence is reported.
std::vector<std::string> gpu_nodes(os::Kernel& kernel) {
  std::vector<std::string> nodes;
  const auto names = kernel.list_directory("/dev");
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const std::string digits = name.starts_with("nvidia") ? name.substr(6) : "";
    const bool numbered = !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
    if (numbered) nodes.push_back("/dev/" + name);
  }
  std::ranges::sort(nodes);
  if (nodes.empty()) nodes.emplace_back("/dev/nvidia0");
  return nodes;
}

/// One that can be opened may be one that cannot be read, as in some containers.
Finding examine_kernel_log(os::Kernel& kernel) {
  const std::string path = "/dev/kmsg";
  const std::string remedy = "run as root or with CAP_SYSLOG, or set sysctl kernel.dmesg_restrict=0";
  Finding finding =
      examine_node(kernel, Use::Exceptions, path, O_RDONLY,
                   "seeing exceptions inside a kernel (Xid messages)", "run outside the container", remedy);
  if (finding.availability != Availability::Good) return finding;
  const auto log = kernel.open(path, O_RDONLY | O_NONBLOCK);
  std::array<std::byte, 8192> record{};
  const auto read = log ? kernel.read(*log, record) : Result<std::size_t>(propagate(log));
  // Nothing there, or the oldest just overwritten: it can be read.
  const bool is_fine =
      read || read.error().code == ErrorCode::Unavailable || read.error().code == ErrorCode::Protocol;
  if (is_fine) return finding;
  return missing(Use::Exceptions, path, "can be opened and not read: " + read.error().message,
                 finding.needed_for, remedy);
}

std::vector<Finding> examine_nodes(os::Kernel& kernel) {
  std::vector<Finding> findings;
  const auto nvidia_node = [&](Use use, const std::string& path, const std::string& needed_for,
                               const std::string& absent) {
    const std::string refused = "give this user read and write access to " + path;
    findings.push_back(examine_node(kernel, use, path, O_RDWR, needed_for, absent, refused));
  };
  for (const std::string& path : gpu_nodes(kernel))
    nvidia_node(Use::Sharing, path, real_gpu, "nvidia-modprobe -c 0");
  nvidia_node(Use::Sharing, "/dev/nvidiactl", real_gpu, "nvidia-modprobe");
  nvidia_node(Use::Sharing, "/dev/nvidia-uvm", real_gpu, "nvidia-modprobe -u -c 0");
  nvidia_node(Use::MemoryFaults, "/dev/nvidia-uvm-tools",
              "seeing memory faults within a millisecond, with the process that caused them",
              "nvidia-modprobe -u -c 0");
  findings.push_back(examine_kernel_log(kernel));
  return findings;
}

bool has_capability(const std::string& status, unsigned number) {
  constexpr std::string_view label = "CapEff:\t";
  const std::size_t found = status.find(label);
  if (found == std::string::npos) return false;
  const char* begin = status.data() + found + label.size();
  std::uint64_t mask = 0;
  std::from_chars(begin, status.data() + status.size(), mask, 16);
  return ((mask >> number) & 1) != 0;
}

Finding examine_descriptor_rights(os::Kernel& kernel) {
  const std::string name = "another process's descriptors (pidfd_getfd)";
  const std::string needed_for = "UVM events, and holding the descriptors of a dying tenant";
  const std::string status = kernel.read_file("/proc/self/status").value_or("");
  if (has_capability(status, cap_sys_ptrace))
    return good(Use::Holding, name, "CAP_SYS_PTRACE: of any process", needed_for);
  // Without Yama there is no such file, and a user may look into their own processes.
  const std::string scope = kernel.read_file("/proc/sys/kernel/yama/ptrace_scope").value_or("0");
  const std::string remedy = "run as root or with CAP_SYS_PTRACE";
  if (scope.starts_with("0"))
    return limited(Use::Holding, name, "of this user's processes only", needed_for, remedy);
  return missing(Use::Holding, name, "kernel.yama.ptrace_scope is " + scope.substr(0, 1), needed_for,
                 remedy + ", or set sysctl kernel.yama.ptrace_scope=0");
}

std::vector<Finding> examine_programs(const ExamineOptions& options) {
  std::vector<Finding> findings;
  for (const std::string name : {"nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}) {
    const std::string needed_for = "sharing a real GPU (MPS)";
    if (const auto path = options.find_program(name)) {
      findings.push_back(good(Use::Sharing, name, *path, needed_for));
    } else {
      findings.push_back(
          missing(Use::Sharing, name, "not in PATH", needed_for, "install the driver's compute utilities"));
    }
  }
  return findings;
}

Finding examine_guard(const guard::ProbeResult& result) {
  const std::string name = "guard (firebreak run --guard)";
  const std::string needed_for = "containing stray accesses on the stock driver";
  switch (result.answer) {
    case guard::ProbeResult::Answer::Works:
      return good(Use::Guard, name, "works on this kernel and driver", needed_for);
    case guard::ProbeResult::Answer::Fails:
      return missing(Use::Guard, name, describe(result), needed_for,
                     "none: UVM refuses it here, and tenants run without it; give them standbys");
    case guard::ProbeResult::Answer::Untested:
      break;
  }
  return limited(Use::Guard, name, describe(result), needed_for, "it is tried again when it is next used");
}

Finding examine_spares(const guard::ProbeResult& result) {
  const std::string name = "spare driver instances (firebreakd --spares)";
  const std::string needed_for = "unmodified programs that go on in the same process";
  if (result.answer == guard::ProbeResult::Answer::Works)
    return good(Use::Spares, name, "work on this kernel and driver", needed_for);
  if (result.answer == guard::ProbeResult::Answer::Fails)
    return missing(Use::Spares, name, describe(result), needed_for,
                   "none: the agent gives no spares here, and programs run without; give them standbys");
  return limited(Use::Spares, name, describe(result), needed_for,
                 "it is tried again when an agent with --spares starts");
}

Finding examine_isolation(os::Kernel& kernel) {
  const std::string name = "fault isolation in nvidia-uvm";
  const std::string needed_for = "memory faults that end their own client alone (docs/how/isolation.md)";
  const auto state = watch::read_isolation_state(kernel);
  if (!state && state.error().code == ErrorCode::NotFound) {
    return missing(Use::Isolation, name, "the module is not the patched one", needed_for,
                   "none where standbys are enough; docs/use/uvm-patch.md says how to build and try it");
  }
  if (!state) return missing(Use::Isolation, name, state.error().message, needed_for, state.error().hint);
  if (state->mode == watch::IsolationMode::On)
    return good(Use::Isolation, name, watch::describe(*state), needed_for);
  return limited(Use::Isolation, name, watch::describe(*state), needed_for,
                 "echo 2 >/sys/module/nvidia_uvm/parameters/uvm_fault_isolation_mode");
}

bool is_there(os::Kernel& kernel, const std::string& path) { return kernel.open(path, O_RDONLY).has_value(); }

Finding examine_cuda(os::Kernel& kernel, const ExamineOptions& options) {
  for (const std::string& folder : options.library_folders) {
    const std::string path = folder + "/libcuda.so.1";
    if (is_there(kernel, path)) return good(Use::Sharing, "libcuda.so.1", path, real_gpu);
  }
  return missing(Use::Sharing, "libcuda.so.1", "in none of the loader's folders", real_gpu,
                 "install the driver's CUDA library, or use the software GPU (FIREBREAK_GPU=soft)");
}

Finding examine_software_gpu(os::Kernel& kernel, const ExamineOptions& options) {
  const std::string name = "software GPU";
  const std::string needed_for = "running without a GPU";
  if (is_there(kernel, options.software_gpu_library))
    return good(Use::SoftwareGpu, name, options.software_gpu_library, needed_for);
  return missing(Use::SoftwareGpu, name, "no " + options.software_gpu_library, needed_for,
                 "build the project: ./dev build");
}

Finding examine_page(const ExamineOptions& options) {
  const std::string name = "page of the characterization";
  const std::string needed_for = "firebreak-lab characterize --html";
  if (options.has_page) return good(Use::Page, name, "built", needed_for);
  return missing(Use::Page, name, "not built: there was no npm", needed_for,
                 "where it is wanted, install nodejs and npm and build again");
}

/// Firebreak has two MPS domains on a GPU, and in another mode a single server may use it.
std::vector<Finding> examine_compute_modes(const std::vector<std::string>& exclusive_gpus) {
  std::vector<Finding> findings;
  for (const std::string& uuid : exclusive_gpus) {
    findings.push_back(missing(Use::Sharing, "compute mode of " + uuid,
                               "not DEFAULT, as in EXCLUSIVE_PROCESS", "the second MPS domain of a GPU",
                               "nvidia-smi -c DEFAULT -i " + uuid));
  }
  return findings;
}

/// The worst of two.
Availability worse(Availability one, Availability other) { return std::max(one, other); }

const char* key_of(Use use) {
  switch (use) {
    case Use::Sharing:
      return "sharing";
    case Use::MemoryFaults:
      return "memory_faults";
    case Use::Exceptions:
      return "exceptions";
    case Use::Holding:
      return "holding";
    case Use::Guard:
      return "guard";
    case Use::Spares:
      return "spares";
    case Use::Isolation:
      return "isolation";
    case Use::SoftwareGpu:
      return "software_gpu";
    case Use::Page:
      return "page";
  }
  return "";
}

const char* key_of(Availability availability) {
  switch (availability) {
    case Availability::Good:
      return "good";
    case Availability::Limited:
      return "limited";
    case Availability::Missing:
      return "missing";
  }
  return "";
}

const char* answer_of(Availability availability) {
  switch (availability) {
    case Availability::Good:
      return "yes     ";
    case Availability::Limited:
      return "partly  ";
    case Availability::Missing:
      return "no      ";
  }
  return "no      ";
}

const char* mark(Availability availability) {
  switch (availability) {
    case Availability::Good:
      return "ok      ";
    case Availability::Limited:
      return "limited ";
    case Availability::Missing:
      return "missing ";
  }
  return "missing ";
}

void append(std::vector<Finding>& to, std::vector<Finding> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::optional<DriverVersion> parse_driver_version(const std::string& text) {
  std::istringstream words(text.substr(0, text.find('\n')));
  DriverVersion version;
  for (std::string word; words >> word;) {
    if (word == "Open") version.open_modules = true;
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (!is_number || word.find('.') == std::string::npos) continue;
    version.number = word;
    return version;
  }
  return std::nullopt;
}

ExamineOptions usual_places(const std::string& software_gpu_library) {
  ExamineOptions options;
  options.find_program = os::find_program;
  options.software_gpu_library = software_gpu_library;
  std::istringstream paths(os::environment_variable("LD_LIBRARY_PATH").value_or(""));
  for (std::string folder; std::getline(paths, folder, ':');) {
    if (!folder.empty()) options.library_folders.push_back(folder);
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                             "/usr/lib", "/usr/local/nvidia/lib64", "/usr/local/cuda/compat"}) {
    options.library_folders.emplace_back(folder);
  }
  return options;
}

std::vector<Finding> examine(os::Kernel& kernel, const ExamineOptions& options) {
  std::vector<Finding> findings;
  findings.push_back(examine_driver(kernel));
  append(findings, examine_modules(kernel));
  append(findings, examine_nodes(kernel));
  append(findings, examine_programs(options));
  append(findings, examine_compute_modes(options.exclusive_gpus));
  findings.push_back(examine_descriptor_rights(kernel));
  findings.push_back(examine_cuda(kernel, options));
  findings.push_back(examine_software_gpu(kernel, options));
  findings.push_back(examine_page(options));
  findings.push_back(examine_isolation(kernel));
  findings.push_back(examine_guard(options.probe_result(guard::Probed::GuardRanges)));
  findings.push_back(examine_spares(options.probe_result(guard::Probed::Spares)));
  return findings;
}

const char* to_string(Use use) {
  switch (use) {
    case Use::Sharing:
      return "share a real GPU between tenants";
    case Use::MemoryFaults:
      return "say within a millisecond who caused a memory fault";
    case Use::Exceptions:
      return "see exceptions inside of kernels";
    case Use::Holding:
      return "let the last kernels of a dying tenant end";
    case Use::Guard:
      return "contain stray accesses of guarded programs";
    case Use::Spares:
      return "let unmodified programs outlive a neighbour's fault";
    case Use::Isolation:
      return "let the driver itself contain memory faults";
    case Use::SoftwareGpu:
      return "try everything without a GPU (FIREBREAK_GPU=soft)";
    case Use::Page:
      return "write the page of a characterization";
  }
  return "";
}

std::vector<UseVerdict> verdicts_of(const std::vector<Finding>& findings) {
  std::vector<UseVerdict> verdicts;
  for (const Use use : {Use::Sharing, Use::MemoryFaults, Use::Exceptions, Use::Holding, Use::Guard,
                        Use::Spares, Use::Isolation, Use::SoftwareGpu, Use::Page}) {
    UseVerdict verdict{use, Availability::Good, {}};
    for (const Finding& finding : findings) {
      if (finding.use != use || worse(verdict.answer, finding.availability) == verdict.answer) continue;
      verdict = {use, finding.availability, finding.name + ": " + finding.detail};
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += mark(finding.availability) + finding.name + ": " + finding.detail + "\n";
    if (finding.availability == Availability::Good) continue;
    text += "        needed for " + finding.needed_for + "\n";
    if (!finding.remedy.empty()) text += "        to do: " + finding.remedy + "\n";
  }
  text += "\nWhat can be done here:\n";
  for (const UseVerdict& verdict : verdicts_of(findings)) {
    text += std::string(answer_of(verdict.answer)) + to_string(verdict.use);
    text += (verdict.because.empty() ? "" : " (" + verdict.because + ")") + "\n";
  }
  return text;
}

std::string to_json(const std::vector<Finding>& findings, bool usable) {
  nlohmann::json document = {{"usable", usable}};
  for (const Finding& finding : findings) {
    document["findings"].push_back({{"name", finding.name},
                                    {"availability", key_of(finding.availability)},
                                    {"use", key_of(finding.use)},
                                    {"detail", finding.detail},
                                    {"needed_for", finding.needed_for},
                                    {"remedy", finding.remedy}});
  }
  for (const UseVerdict& verdict : verdicts_of(findings)) {
    document["verdicts"].push_back(
        {{"use", key_of(verdict.use)}, {"answer", key_of(verdict.answer)}, {"because", verdict.because}});
  }
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace firebreak::cli
