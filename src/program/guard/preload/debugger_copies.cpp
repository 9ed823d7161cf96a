// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/debugger_copies.h"

#include <dlfcn.h>

#include <string_view>

#include "ground/os/self.h"
#include "program/guard/preload/process_driver.h"
#include "program/virtual/instance.h"

namespace firebreak::guard {
namespace {

using os::PrivateLibrary;

constexpr std::string_view driver_name = "libcuda.so";
constexpr std::string_view debugger_name = "libcudadebugger.so";
/// One that it exports, by which it is found.
constexpr const char* debugger_function = "GetCUDADebuggerAPI";

std::string_view without_folder(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void* debugger_in_place_of(const char* file, const void* caller) {
  if (file == nullptr || !without_folder(file).starts_with(debugger_name)) return nullptr;
  const auto asks = PrivateLibrary::origin_of(caller);
  if (!asks || !asks->name.starts_with(driver_name)) return nullptr;
  const Bypass bypass;
  const auto function = os::load_symbol(file, debugger_function);
  const auto path = function ? os::library_of(*function) : Result<std::string>(propagate(function));
  if (!path) return nullptr;
  const auto copy = PrivateLibrary::load(*path, asks->copy_number);
  return copy ? copy->handle() : nullptr;
}

void* driver_of_debugger(const void* caller) {
  const auto asks = PrivateLibrary::origin_of(caller);
  if (!asks || !asks->name.starts_with(debugger_name)) return nullptr;
  return virtual_driver::instance_library(asks->copy_number);
}

}  // namespace firebreak::guard
