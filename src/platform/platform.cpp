// SPDX-License-Identifier: Apache-2.0
#include "platform/platform.h"

#include <spdlog/spdlog.h>

#include "abi/nvml.h"
#include "os/real_kernel.h"
#include "os/regular_file.h"
#include "os/scheduling.h"
#include "os/self.h"
#include "platform/gpu_list.h"
#include "softgpu/devices/device_kernel.h"
#include "softgpu/environment.h"

namespace firebreak::platform {
namespace {

constexpr const char* control_program = "nvidia-cuda-mps-control";

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
  Platform platform;
  platform.gpu = Gpu::Soft;
  const std::string library_folder = *root + "/lib/softgpu";
  platform.cuda_library = library_folder + "/libcuda.so.1";
  platform.nvml_library = library_folder + "/" + abi::nvml_library_name;
  platform.control_program = *root + "/bin/softgpu/" + control_program;
  if (!os::find_program(platform.control_program)) {
    return fail(ErrorCode::NotFound, "the software GPU is not installed: no " + platform.control_program,
                "build it, or set FIREBREAK_GPU=real");
  }
  const std::string inherited = os::environment_variable("LD_LIBRARY_PATH").value_or("");
  platform.environment.emplace_back("LD_LIBRARY_PATH",
                                    inherited.empty() ? library_folder : library_folder + ":" + inherited);
  platform.environment.emplace_back("FIREBREAK_GPU", "soft");
  std::string state = os::environment_variable(softgpu::environment::directory).value_or(state_directory);
  if (!state.empty()) platform.environment.emplace_back(softgpu::environment::directory, state);
  platform.kernel = std::make_unique<softgpu::DeviceKernel>(std::make_unique<os::RealKernel>(), state);
  platform.environment.emplace_back("FIREBREAK_UVM_LINK", platform.kernel->uvm_link_target());
  if (auto driver = platform.kernel->gpu_driver())
    platform.environment.emplace_back("FIREBREAK_GPU_DRIVER", std::move(*driver));
  return platform;
}

}  // namespace

Result<std::pair<std::string, std::string>> guard_preload() {
  const auto root = installation();
  if (!root) return propagate(root);
  const std::string library = *root + "/lib/libfirebreak-guard.so";
  os::RealKernel kernel;
  if (!os::regular_file_at(kernel, library)) {
    return fail(ErrorCode::NotFound, "the guard is not installed: no " + library, "build it: ./dev build");
  }
  const std::string inherited = os::environment_variable("LD_PRELOAD").value_or("");
  return std::pair{std::string("LD_PRELOAD"), inherited.empty() ? library : library + ":" + inherited};
}

Result<os::SpawnRequest> guard_trial(const Platform& platform) {
  const auto root = installation();
  if (!root) return propagate(root);
  os::SpawnRequest request;
  request.command = {*root + "/bin/firebreak", "guard-trial"};
  request.environment = platform.environment;
  return request;
}

Result<std::string> find_gpu(const Platform& platform, const std::string& wanted) {
  return choose_gpu(platform.gpu == Gpu::Soft ? software_gpus() : listed_gpus(*platform.kernel), wanted);
}

Status real_gpu_is_there(os::Kernel& kernel) {
  if (!kernel.read_file("/proc/driver/nvidia/version"))
    return fail(ErrorCode::NotFound, "NVIDIA's driver is not loaded");
  if (!os::find_program(control_program)) {
    return fail(ErrorCode::NotFound, "no nvidia-cuda-mps-control in PATH", "install NVIDIA's MPS binaries");
  }
  return {};
}

Result<Platform> choose(const std::string& state_directory, const std::string& asked_for) {
  const std::string wanted =
      !asked_for.empty() ? asked_for : os::environment_variable("FIREBREAK_GPU").value_or("auto");
  if (wanted == "soft") return soft(state_directory);
  if (wanted != "auto" && wanted != "real") {
    return fail(ErrorCode::InvalidArgument, "FIREBREAK_GPU is '" + wanted + "'", "use auto, real or soft");
  }
  os::RealKernel kernel;
  const Status there = real_gpu_is_there(kernel);
  if (there) return real();
  if (wanted == "auto") return soft(state_directory);
  return fail(ErrorCode::NotFound, "no real GPU: " + to_string(there.error()), "or set FIREBREAK_GPU=soft");
}

void hear_promptly(const Platform& platform) {
  if (platform.gpu == Gpu::Soft) return;
  if (const Status first = os::run_as_soon_as_woken(); !first) {
    spdlog::warn("signals may come up to 4 ms late: {}", firebreak::to_string(first.error()));
  }
}

const char* to_string(Gpu gpu) { return gpu == Gpu::Real ? "real" : "soft"; }

}  // namespace firebreak::platform
