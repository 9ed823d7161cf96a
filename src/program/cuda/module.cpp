// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/module.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace firebreak::cuda {
namespace {

constexpr std::size_t log_size_bytes = 8192;

/// The compiler's log on one line.
std::string flatten(std::string_view log) {
  std::string line;
  for (const char c : log) {
    if (c == '\0') break;
    if (c != '\n') {
      line += c;
    } else if (!line.empty() && !line.ends_with("; ")) {
      line += "; ";
    }
  }
  while (line.ends_with("; ")) line.erase(line.size() - 2);
  return line;
}

}  // namespace

Result<Module> Module::load_ptx(const Driver& driver, std::string_view ptx) {
  const std::string image(ptx);  // the driver wants a terminating zero
  std::string log(log_size_bytes, '\0');
  std::array options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  // An option's value is the pointer itself: for a size, a number in a pointer's place.
  void* size_value = nullptr;
  const std::uintptr_t size = log_size_bytes;
  std::memcpy(&size_value, &size, sizeof size);
  std::array<void*, 2> values{log.data(), size_value};

  CUmodule module = nullptr;
  const CUresult result = driver->cuModuleLoadDataEx(
      &module, image.c_str(), static_cast<unsigned int>(options.size()), options.data(), values.data());
  auto status = driver.check(result, "cuModuleLoadDataEx");
  if (!status) {
    const std::string compiler_log = flatten(log);
    Error error = status.error();
    if (!compiler_log.empty()) error.message += "; " + compiler_log;
    return tl::unexpected<Error>(std::move(error));
  }
  return Module(driver, module);
}

Result<Module> Module::load_binary(const Driver& driver, std::span<const std::byte> binary) {
  CUmodule module = nullptr;
  const auto status = driver.check(driver->cuModuleLoadDataEx(&module, binary.data(), 0, nullptr, nullptr),
                                   "cuModuleLoadDataEx");
  if (!status) return propagate(status);
  return Module(driver, module);
}

Result<Function> Module::function(const std::string& name) const {
  const Driver& driver = module_.driver();
  CUfunction function = nullptr;
  const auto status = driver.check(driver->cuModuleGetFunction(&function, module_.get(), name.c_str()),
                                   "cuModuleGetFunction");
  if (!status) return propagate(status, "kernel " + name);
  return Function(driver, function);
}

Result<ModuleVariable> Module::variable(const std::string& name) const {
  const Driver& driver = module_.driver();
  ModuleVariable variable;
  const auto status = driver.check(
      driver->cuModuleGetGlobal(&variable.address, &variable.size_bytes, module_.get(), name.c_str()),
      "cuModuleGetGlobal");
  if (!status) return propagate(status, "variable " + name);
  return variable;
}

}  // namespace firebreak::cuda
