// SPDX-License-Identifier: Apache-2.0
#include "ground/platform/platform.h"

#include <spdlog/spdlog.h>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/platform/gpu_list.h"
#include "ground/platform/nvml.h"
#include "ground/platform/plug_in.h"

namespace firebreak::platform {
namespace {

constexpr const char* control_program = "nvidia-cuda-mps-control";
/// Path in the installation.
constexpr const char* software_gpu_library = "/lib/softgpu/libfirebreak-softgpu.so";

/// The guard as programs load it. The dynamic linker of glibc knows what $LIB is. That of musl does not, and
/// passes over what it does not find: the guard needs glibc, and would end each program there.
constexpr const char* preload_path = "/lib/firebreak/$LIB/libfirebreak-guard.so";

/// The variable as it is, with one more word behind.
std::pair<std::string, std::string> appended(const std::string& name, const std::string& word) {
  const std::string now = os::environment_variable(name).value_or("");
  return {name, now.empty() ? word : now + ":" + word};
}

/// The folder above the one that holds the running program: build trees and installations have bin/ and lib/
/// in it.
Result<std::string> installation() {
  auto program = os::executable_path();
  if (!program) return propagate(program);
  const std::size_t name = program->rfind('/');
  const std::size_t folder = program->rfind('/', name - 1);
  return program->substr(0, folder);
}

Platform real() {
  Platform platform;
  platform.gpu = Gpu::Real;
  platform.kernel = std::make_unique<os::RealKernel>();
  platform.cuda_library = "libcuda.so.1";
  platform.nvml_library = abi::nvml_library_name;
  platform.control_program = control_program;
  platform.environment.emplace_back("FIREBREAK_GPU", "real");
  return platform;
}

Result<Platform> soft(const std::string& state_directory) {
  const auto root = installation();
  if (!root) return propagate(root);
  const auto make = os::load_symbol(*root + software_gpu_library, make_platform_symbol);
  if (!make) {
    return fail(ErrorCode::NotFound, "the software GPU is not installed: " + make.error().message,
                "build it, or set FIREBREAK_GPU=real");
  }
  Result<Platform> made;
  reinterpret_cast<MakePlatform*> (*make)({*root, state_directory}, made);
  return made;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> guard_preload() {
  const auto root = installation();
  if (!root) return propagate(root);
  const std::string library = *root + "/lib/libfirebreak-guard.so";
  os::RealKernel kernel;
  if (!os::regular_file_at(kernel, library)) {
    return fail(ErrorCode::NotFound, "the guard is not installed: no " + library, "build it: ./dev build");
  }
  return std::vector{appended("LD_PRELOAD", *root + preload_path),
                     appended("ASAN_OPTIONS", "verify_asan_link_order=0")};
}

Result<os::SpawnRequest> probe(const Platform& platform, const std::string& command) {
  const auto root = installation();
  if (!root) return propagate(root);
  os::SpawnRequest request;
  request.command = {*root + "/bin/firebreak", command};
  request.environment = platform.environment;
  return request;
}

Result<std::string> find_gpu(const Platform& platform, const std::string& wanted) {
  if (platform.gpu == Gpu::Soft) return choose_gpu(platform.gpu_uuids, wanted);
  std::vector<std::string> uuids;
  for (const ListedGpu& gpu : listed_gpus(*platform.kernel)) uuids.push_back(gpu.uuid);
  return choose_gpu(uuids, wanted);
}

Status real_gpu_is_there(os::Kernel& kernel) {
  if (!kernel.read_file("/proc/driver/nvidia/version"))
    return fail(ErrorCode::NotFound, "NVIDIA's driver is not loaded");
  if (!os::find_program(control_program)) {
    return fail(ErrorCode::NotFound, "no nvidia-cuda-mps-control in PATH", "install NVIDIA's MPS binaries");
  }
  return {};
}

Result<Gpu> wanted_gpu(const std::string& wanted) {
  const std::string word = !wanted.empty() ? wanted : os::environment_variable("FIREBREAK_GPU").value_or("");
  if (word == "soft") return Gpu::Soft;
  if (word.empty() || word == "real") return Gpu::Real;
  return fail(ErrorCode::InvalidArgument, "FIREBREAK_GPU is '" + word + "'", "use real or soft");
}

Result<Platform> choose(const std::string& state_directory, const std::string& wanted) {
  const auto gpu = wanted_gpu(wanted);
  if (!gpu) return propagate(gpu);
  if (*gpu == Gpu::Soft) return soft(state_directory);
  os::RealKernel kernel;
  if (const Status there = real_gpu_is_there(kernel); !there) {
    return fail(ErrorCode::NotFound, "no real GPU: " + to_string(there.error()),
                "to try Firebreak without one set FIREBREAK_GPU=soft");
  }
  return real();
}

void hear_promptly() {
  if (const Status first = os::run_as_soon_as_woken(); !first) {
    spdlog::warn("signals may come up to 4 ms late: {}", firebreak::to_string(first.error()));
  }
}

const char* to_string(Gpu gpu) { return gpu == Gpu::Real ? "real" : "soft"; }

}  // namespace firebreak::platform
