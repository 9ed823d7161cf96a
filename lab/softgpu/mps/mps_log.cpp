// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mps/mps_log.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "ground/os/file.h"
#include "ground/os/self.h"
#include "softgpu/environment.h"

namespace firebreak::softgpu::mps {

namespace {
constexpr const char* default_log_directory = "/var/log/nvidia-mps";
}

MpsLog::MpsLog(const std::string& file_name, std::string role) : role_(std::move(role)) {
  const std::string directory =
      os::environment_variable(environment::mps_log_directory).value_or(default_log_directory);
  if (os::make_directories(directory)) file_.open(directory + "/" + file_name, std::ios::app);
}

MpsLog MpsLog::on_standard_output(std::string role) {
  MpsLog log(std::move(role));
  log.file_.open("/dev/stdout", std::ios::app);
  return log;
}

void MpsLog::write(const std::string& text) {
  if (!file_.is_open()) return;
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto milliseconds = now.time_since_epoch().count() % 1000;
  file_ << fmt::format("[{:%Y-%m-%d %H:%M:%S}.{:03} {} {:5}] {}\n",
                       fmt::localtime(std::chrono::system_clock::to_time_t(now)), milliseconds, role_,
                       os::own_pid(), text)
        << std::flush;
}

}  // namespace firebreak::softgpu::mps
