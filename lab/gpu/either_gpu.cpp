// SPDX-License-Identifier: Apache-2.0
#include "gpu/either_gpu.h"

#include "ground/os/real_kernel.h"
#include "ground/os/self.h"

namespace firebreak::gpu {

Result<platform::Platform> choose_either(const std::string& state_directory, const std::string& wanted) {
  const std::string word = !wanted.empty() ? wanted : os::environment_variable("FIREBREAK_GPU").value_or("");
  if (word == "real" || word == "soft") return platform::choose(state_directory, word);
  if (!word.empty() && word != "auto") {
    return fail(ErrorCode::InvalidArgument, "FIREBREAK_GPU is '" + word + "'", "use auto, real or soft");
  }
  os::RealKernel kernel;
  return platform::choose(state_directory, platform::real_gpu_is_there(kernel) ? "real" : "soft");
}

}  // namespace firebreak::gpu
