// SPDX-License-Identifier: Apache-2.0
#include "tests/softgpu/gpu_test.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "softgpu/environment.h"

namespace firebreak::test {
namespace {

/// The software GPU's state folder, removed with the process that made it.
class StateFolder {
 public:
  StateFolder()
      : path_(std::filesystem::temp_directory_path() / ("firebreak-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
    setenv(softgpu::environment::directory, path_.c_str(), 1);
    setenv(softgpu::environment::speed, "20", 0);
  }
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;
  ~StateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

bool choose_driver() {
  static const StateFolder folder;
  setenv("FIREBREAK_CUDA_LIBRARY", FIREBREAK_SOFTGPU_LIBRARY, 0);
  return std::string_view(std::getenv("FIREBREAK_CUDA_LIBRARY")) == FIREBREAK_SOFTGPU_LIBRARY;
}

}  // namespace firebreak::test
