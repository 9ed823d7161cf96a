// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <utility>

namespace firebreak::softgpu::mps {

/// control.log or server.log in CUDA_MPS_LOG_DIRECTORY, or standard output, in the format of NVIDIA's. Says
/// nothing where that cannot be written.
class MpsLog {
 public:
  /// `role` is "Control" or "Server".
  MpsLog(const std::string& file_name, std::string role);
  /// A daemon in the foreground writes there.
  static MpsLog on_standard_output(std::string role);
  void write(const std::string& text);

 private:
  explicit MpsLog(std::string role) : role_(std::move(role)) {}

  std::string role_;
  std::ofstream file_;
};

}  // namespace firebreak::softgpu::mps
