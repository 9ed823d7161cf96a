// SPDX-License-Identifier: Apache-2.0
#include "characterize/result.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace firebreak::characterize {

Status same_origin(const Results& before, const Results& now) {
  const auto differs = [](const char* what, const auto& then, const auto& today) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("the file's runs have another {} ('{}', now '{}')", what, then, today),
                "give another file name, or go on without --resume");
  };
  const platform::Machine& then = before.machine;
  const platform::Machine& today = now.machine;
  if (then.gpu != today.gpu) return differs("GPU", then.gpu, today.gpu);
  if (then.driver != today.driver) return differs("driver", then.driver, today.driver);
  if (then.linux_release != today.linux_release)
    return differs("Linux", then.linux_release, today.linux_release);
  if (then.commit != today.commit) return differs("commit", then.commit, today.commit);
  if (before.seed != now.seed) return differs("seed", before.seed, now.seed);
  if (before.softgpu_speed != now.softgpu_speed)
    return differs("speed of the software GPU", before.softgpu_speed, now.softgpu_speed);
  return {};
}

Status write_file(const std::string& path, const std::string& text) {
  const std::string beside = path + ".new";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(ErrorCode::Internal, "cannot write " + beside);
  std::error_code wrong;
  std::filesystem::rename(beside, path, wrong);
  if (wrong) return fail(ErrorCode::Internal, fmt::format("cannot write {}: {}", path, wrong.message()));
  return {};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::NotFound, "cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace firebreak::characterize
