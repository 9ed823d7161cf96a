// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

namespace firebreak::softgpu::mps {

/// control.log or server.log in CUDA_MPS_LOG_DIRECTORY, in the format of NVIDIA's. Says nothing where the
/// folder cannot be written.
class MpsLog {
 public:
  /// `role` is "Control" or "Server".
  MpsLog(const std::string& file_name, std::string role);
  void write(const std::string& text);

 private:
  std::string role_;
  std::ofstream file_;
};

}  // namespace firebreak::softgpu::mps
