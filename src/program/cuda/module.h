// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "program/cuda/function.h"
#include "program/cuda/owned.h"

namespace firebreak::cuda {

/// A variable of a module in GPU memory; valid as long as its Module lives.
struct ModuleVariable {
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
};

/// Kernels compiled from PTX and loaded into the current context.
class Module {
 public:
  /// Compiles and loads. On failure the message ends with the compiler's log, its lines joined by "; ".
  static Result<Module> load_ptx(const Driver& driver, std::string_view ptx);

  /// Loads what a compiler made for this very GPU.
  static Result<Module> load_binary(const Driver& driver, std::span<const std::byte> binary);

  /// NotFound when the module has no kernel of that name.
  Result<Function> function(const std::string& name) const;
  Result<ModuleVariable> variable(const std::string& name) const;

 private:
  struct Unload {
    void operator()(const Driver& driver, CUmodule module) const { driver->cuModuleUnload(module); }
  };
  Module(const Driver& driver, CUmodule module) : module_(driver, module) {}

  Owned<CUmodule, Unload> module_;
};

}  // namespace firebreak::cuda
