// SPDX-License-Identifier: Apache-2.0
#include "tests/softgpu/gpu_test.h"

#include <cstdlib>
#include <string_view>

#include "ground/os/file.h"
#include "softgpu/environment.h"

namespace firebreak::test {
namespace {

/// The software GPU's state folder, removed with the process that made it. Its name is nobody else's: what a
/// process with the same number left behind would be taken for this GPU's state.
class StateFolder {
 public:
  StateFolder() : folder_(must(os::TemporaryDirectory::create())) {
    setenv(softgpu::environment::directory, folder_.path().c_str(), 1);
    setenv(softgpu::environment::speed, "20", 0);
  }

 private:
  os::TemporaryDirectory folder_;
};

}  // namespace

bool choose_driver() {
  static const StateFolder folder;
  setenv("FIREBREAK_CUDA_LIBRARY", FIREBREAK_SOFTGPU_LIBRARY, 0);
  return std::string_view(std::getenv("FIREBREAK_CUDA_LIBRARY")) == FIREBREAK_SOFTGPU_LIBRARY;
}

}  // namespace firebreak::test
