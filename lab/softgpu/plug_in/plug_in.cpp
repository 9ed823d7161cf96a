// SPDX-License-Identifier: Apache-2.0
/// libfirebreak-softgpu.so: the software GPU as a platform.
#include "ground/platform/plug_in.h"

#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/platform/nvml.h"
#include "softgpu/devices/device_kernel.h"
#include "softgpu/environment.h"
#include "softgpu/machine/device_uuid.h"
#include "softgpu/machine/mps_protocol.h"

namespace firebreak::softgpu {
namespace {

Result<platform::Platform> make_platform(const platform::PlugInRequest& request) {
  platform::Platform made;
  made.gpu = platform::Gpu::Soft;
  const std::string library_folder = request.installation + "/lib/softgpu";
  made.cuda_library = library_folder + "/libcuda.so.1";
  made.nvml_library = library_folder + "/" + abi::nvml_library_name;
  made.control_program = request.installation + "/lib/softgpu/nvidia-cuda-mps-control";
  if (!os::find_program(made.control_program)) {
    return fail(ErrorCode::NotFound, "the software GPU is not installed: no " + made.control_program,
                "build it, or set FIREBREAK_GPU=real");
  }
  const std::string inherited = os::environment_variable("LD_LIBRARY_PATH").value_or("");
  made.environment.emplace_back("LD_LIBRARY_PATH",
                                inherited.empty() ? library_folder : library_folder + ":" + inherited);
  made.environment.emplace_back("FIREBREAK_GPU", "soft");
  std::string state = os::environment_variable(environment::directory).value_or(request.state_directory);
  if (!state.empty()) made.environment.emplace_back(environment::directory, state);
  made.kernel = std::make_unique<DeviceKernel>(std::make_unique<os::RealKernel>(), state);
  for (std::uint32_t gpu = 0; gpu < gpu_count_from_environment(); ++gpu)
    made.gpu_uuids.push_back(uuid_text(gpu));
  made.mps_server_argument = mps::server_argument;
  made.state_variable = environment::directory;
  return made;
}

}  // namespace
}  // namespace firebreak::softgpu

extern "C" __attribute__((visibility("default"))) void firebreak_make_platform(
    const firebreak::platform::PlugInRequest& request,
    firebreak::Result<firebreak::platform::Platform>& made) {
  made = firebreak::softgpu::make_platform(request);
}

static_assert(std::is_same_v<decltype(firebreak_make_platform), firebreak::platform::MakePlatform>);
