// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/core_dump_mode.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "ground/os/fd.h"
#include "ground/os/self.h"
#include "softgpu/driver/core_dump_lines.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::driver {
namespace {

/// Answers of an H100's driver that have no name in cuda.h.
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

bool CoreDumpMode::aborts() const {
  if (!is_on_by_calls_.load()) return settings_.aborts;
  const std::lock_guard lock(mutex_);
  return (flags_by_calls_ & CU_COREDUMP_SKIP_ABORT) == 0;
}

CUresult CoreDumpMode::set(CUcoredumpSettings setting, const void* value, std::size_t size_bytes) {
  if (settings_.enabled || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(mutex_);
  switch (setting) {
    case CU_COREDUMP_FILE: {
      const std::string_view text(static_cast<const char*>(value), size_bytes);
      file_by_calls_ = fill_in(text.substr(0, text.find('\0')));
      return CUDA_SUCCESS;
    }
    case CU_COREDUMP_GENERATION_FLAGS:
      if (size_bytes != sizeof(flags_by_calls_)) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(&flags_by_calls_, value, size_bytes);
      return CUDA_SUCCESS;
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
      if (size_bytes != sizeof(bool)) return CUDA_ERROR_INVALID_VALUE;
      is_on_by_calls_.store(*static_cast<const bool*>(value));
      return CUDA_SUCCESS;
    case CU_COREDUMP_LIGHTWEIGHT:
      return size_bytes == sizeof(bool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// The other settings were said to be invalid values.
CUresult CoreDumpMode::get(CUcoredumpSettings setting, void* value, std::size_t* size_bytes) const {
  if (setting != CU_COREDUMP_FILE || value == nullptr || size_bytes == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  std::string named = settings_.enabled ? settings_.file : std::string();
  if (!settings_.enabled) {
    const std::lock_guard lock(mutex_);
    named = file_by_calls_;
  }
  if (*size_bytes <= named.size()) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(value, named.c_str(), named.size() + 1);
  return CUDA_SUCCESS;
}

std::string CoreDumpMode::file() const {
  const std::lock_guard lock(mutex_);
  return file_by_calls_.empty() ? settings_.file : file_by_calls_;
}

void CoreDumpMode::show(const std::string& lines) const {
  // The lines come at once, so that nobody's words come between.
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
  if (!settings_.shows_progress) (void)std::fwrite(core_dump_hint.data(), 1, core_dump_hint.size(), stderr);
  const std::vector<std::byte> bytes = content(exception, faulted_here);
  if (faulted_here) show(exception_lines());
  const os::Fd opened(::open(file().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!opened) {
    error_.store(cannot_open_dump);
    is_in_order_.store(false);
    return;
  }
  if (write_all(opened, bytes)) show(core_dump_end_lines());
}

}  // namespace firebreak::softgpu::driver
