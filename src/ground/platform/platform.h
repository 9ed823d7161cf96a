// SPDX-License-Identifier: Apache-2.0
/// The choice of the GPU: the real one, unless the software one is asked for. Nobody else asks; everybody is
/// given the answer.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::platform {

enum class Gpu { Real, Soft };

/// How to reach the chosen GPU. `kernel` answers for its device nodes.
struct Platform {
  Gpu gpu = Gpu::Real;
  std::unique_ptr<os::Kernel> kernel;
  std::string cuda_library;     ///< library to load as libcuda.so.1
  std::string nvml_library;     ///< library to load as libnvidia-ml.so.1; it reads `environment` in this
                                ///< process
  std::string control_program;  ///< nvidia-cuda-mps-control
  /// Variables that programs need in their environment to use this GPU.
  std::vector<std::pair<std::string, std::string>> environment;

  // Facts of the software GPU alone.
  std::vector<std::string> gpu_uuids;  ///< the driver's procfs lists none
  std::string mps_server_argument;     ///< argument by which processes that are MPS servers are known
  std::string state_variable;          ///< variable of the environment: which of several software GPUs a
                                       ///< process uses
};

/// Returns the GPU that is asked for: `wanted` says "real" or "soft", where it is empty FIREBREAK_GPU does,
/// and where that is empty too it is the real one. InvalidArgument: another word.
Result<Gpu> wanted_gpu(const std::string& wanted = {});

/// Returns that GPU, and never another in its place. NotFound when it is not there, with what to do. The
/// software GPU's state goes to `state_directory` unless FIREBREAK_SOFTGPU_DIR names another.
Result<Platform> choose(const std::string& state_directory = {}, const std::string& wanted = {});

/// Returns the variables that make a program run with the guard (src/program/guard/preload). Whoever is
/// preloaded already stays in front of it, and calls it as they would call the driver. NotFound: it is not
/// installed.
Result<std::vector<std::pair<std::string, std::string>>> guard_preload();

/// The program that tries whether something works here (program/guard/probe.h): that command of `firebreak`.
Result<os::SpawnRequest> probe(const Platform& platform, const std::string& command);

/// The full UUID of the platform's one GPU whose UUID is, or begins with, `wanted` ("GPU-8932f937").
/// NotFound, with those that there are; InvalidArgument where several begin so. Where the driver lists none
/// in procfs, `wanted` itself.
Result<std::string> find_gpu(const Platform& platform, const std::string& wanted);

/// Says whether the machine has a real GPU that can be shared; if not, why, in one line.
Status real_gpu_is_there(os::Kernel& kernel);

/// Lets the calling thread, which listens for faults, run as soon as it is woken, beside all that spin for a
/// real GPU or compute as the software one. Where that cannot be had the log says so: then some signals come
/// up to 4 ms late.
void hear_promptly();

/// "real" or "soft".
const char* to_string(Gpu gpu);

}  // namespace firebreak::platform
