// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core_dump_mode.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

#include "os/fd.h"
#include "os/self.h"
#include "softgpu/driver/core_dump_lines.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::driver {
namespace {

/// What an H100's driver answers, which cuda.h has no name for.
constexpr auto cannot_open_dump = static_cast<CUresult>(10);

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string fill_in(std::string_view pattern) {
  std::string path;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char letter = pattern[at] == '%' && at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (letter == 'p') path += std::to_string(os::own_pid());
    if (letter == 'h') path += host_name();
    if (letter == 't') path += std::to_string(::time(nullptr));
    const bool is_filled = letter == 'p' || letter == 'h' || letter == 't';
    if (!is_filled) path += pattern[at];
    at += is_filled ? 1 : 0;
  }
  return path;
}

/// False: nobody reads any more, or the disk is full.
bool write_all(const os::Fd& file, const std::vector<std::byte>& bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = ::write(file.get(), bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) written += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

CoreDumpSettings core_dump_settings() {
  const auto is_on = [](const char* name) { return os::environment_variable(name) == "1"; };
  CoreDumpSettings settings;
  settings.enabled = is_on(environment::core_dump_on_exception);
  settings.dumps_after_traps = os::environment_variable(environment::dumps_after_traps) != "0";
  settings.shows_progress = settings.enabled && is_on(environment::core_dump_progress);
  const std::string flags = os::environment_variable(environment::core_dump_flags).value_or("");
  settings.aborts = flags.find("skip_abort") == std::string::npos;
  const std::string file = os::environment_variable(environment::core_dump_file).value_or("");
  settings.file = fill_in(file.empty() ? "core_%t_%h_%p.nvcudmp" : file);
  return settings;
}

void CoreDumpMode::show(const std::string& lines) const {
  // At once, so that nobody's words come between.
  if (settings_.shows_progress) std::fputs(lines.c_str(), stderr);
}

CoreDumpMode::RunningKernel::RunningKernel(CoreDumpMode& mode, const Launch& launch) : mode_(mode) {
  const std::lock_guard lock(mode_.mutex_);
  place_ = mode_.kernels_.insert(mode_.kernels_.end(), {launch.grid, launch.block, 0, false});
}

CoreDumpMode::RunningKernel::~RunningKernel() {
  const std::lock_guard lock(mode_.mutex_);
  if (!stays_) mode_.kernels_.erase(place_);
}

void CoreDumpMode::RunningKernel::halt(const GpuFault& fault) {
  const std::lock_guard lock(mode_.mutex_);
  stays_ = true;
  place_->halted = true;
  place_->program_counter = program_counter(fault);
  if (mode_.exception_lines_.empty()) mode_.exception_lines_ = core_dump_lines(fault);
}

std::vector<std::byte> CoreDumpMode::content(const SmException& exception, bool faulted_here) {
  const std::lock_guard lock(mutex_);
  std::vector<DumpedKernel> kernels(kernels_.begin(), kernels_.end());
  // Whoever was halted after the first has its exception in nobody's dump.
  bool first = faulted_here;
  for (DumpedKernel& kernel : kernels) {
    kernel.halted = kernel.halted && std::exchange(first, false);
  }
  return core_dump_file(exception, kernels);
}

std::string CoreDumpMode::exception_lines() {
  const std::lock_guard lock(mutex_);
  return exception_lines_;
}

void CoreDumpMode::write(const SmException& exception, bool faulted_here) {
  show(core_dump_begin_lines());
  const std::vector<std::byte> bytes = content(exception, faulted_here);
  if (faulted_here) show(exception_lines());
  const os::Fd file(::open(settings_.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) {
    error_.store(cannot_open_dump);
    is_in_order_.store(false);
    return;
  }
  if (write_all(file, bytes)) show(core_dump_end_lines());
}

}  // namespace firebreak::softgpu::driver
