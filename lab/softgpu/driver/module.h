// SPDX-License-Identifier: Apache-2.0
/// Modules and functions: PTX text, decoded, with its variables in device memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/abi/cuda_driver.h"
#include "softgpu/driver/answer.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu::driver {

class Process;
class Module;

/// A kernel and what the program set for it. Thread safe.
struct Function {
  Function(CUmodule of_module, CUcontext in_context, std::shared_ptr<const LoadedModule> in_module,
           const Kernel& of_kernel)
      : module_handle(of_module), context(in_context), module(std::move(in_module)), kernel(of_kernel) {}
  const CUmodule module_handle;
  const CUcontext context;
  const std::shared_ptr<const LoadedModule> module;
  const Kernel& kernel;
  std::atomic<int> max_dynamic_shared_bytes{48 * 1024};
  std::atomic<int> preferred_carveout{-1};
};

/// Thread safe.
class Module {
 public:
  /// INVALID_PTX when the text is not valid; `log` then says where.
  static Answer<std::shared_ptr<Module>> load(Process& process, std::string_view ptx, CUcontext context,
                                              std::string& log);
  Module(Process& process, CUcontext context, std::shared_ptr<const LoadedModule> loaded,
         std::vector<std::uint64_t> variables);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// Gives the variables' memory back.
  ~Module();

  CUmodule handle() { return reinterpret_cast<CUmodule>(this); }
  const LoadedModule& loaded() const { return *loaded_; }
  /// Returns NOT_FOUND when there is no such kernel, and the same handle for the same name.
  Answer<CUfunction> function(const std::string& name);
  /// Makes its functions' handles invalid.
  void forget_functions();

 private:
  Process& process_;
  CUcontext context_;
  std::shared_ptr<const LoadedModule> loaded_;
  std::vector<std::uint64_t> variables_;
  std::mutex mutex_;
  std::map<std::string, CUfunction> functions_;
};

}  // namespace firebreak::softgpu::driver
