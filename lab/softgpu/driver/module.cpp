// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/module.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "kernels/ptx/parse.h"
#include "softgpu/driver/memory_pieces.h"
#include "softgpu/driver/process.h"

namespace firebreak::softgpu::driver {

namespace {

/// Places of a module's variables, and which there are, for when loading fails or the module is unloaded.
struct VariableMemory {
  Process& process;
  CUcontext context;
  std::vector<std::uint64_t> allocated;

  Result<std::uint64_t> allocate(std::uint64_t size_bytes, std::uint64_t alignment_bytes) {
    if (alignment_bytes > DeviceMemory::alignment_bytes) {
      return fail(ErrorCode::Unsupported, "a variable's alignment is above 512 bytes");
    }
    const auto address = process.memory().allocate(std::max<std::uint64_t>(size_bytes, 1), context);
    if (!address) return fail(ErrorCode::ResourceExhausted, "no device memory for the module's variables");
    allocated.push_back(*address);
    fill_bytes(process.space(), process.control(), *address, std::array{std::byte{0}}, size_bytes);
    return *address;
  }
  Status write(std::uint64_t address, std::span<const std::byte> bytes) {
    const auto target = find_piece(process.space(), {address, true, nullptr}, 0, bytes.size(),
                                   GpuAccess::Store, Engine::Copy);
    if (!target || target->bytes.size() < bytes.size()) {
      return fail(ErrorCode::Internal, "a module's variable is not mapped");
    }
    std::memcpy(target->bytes.data(), bytes.data(), bytes.size());
    return {};
  }
  void free_all() {
    for (const std::uint64_t address : allocated) process.memory().free(address, AllocationKind::Device);
  }
};

}  // namespace

Answer<std::shared_ptr<Module>> Module::load(Process& process, std::string_view ptx, CUcontext context,
                                             std::string& log) {
  auto parsed = ptx::parse(ptx);
  if (!parsed) {
    log = parsed.error().message;
    return refuse(CUDA_ERROR_INVALID_PTX);
  }
  VariableMemory memory{process, context, {}};
  auto loaded = LoadedModule::load(
      std::move(*parsed),
      [&](std::uint64_t size_bytes, std::uint64_t alignment) {
        return memory.allocate(size_bytes, alignment);
      },
      [&](std::uint64_t address, std::span<const std::byte> bytes) { return memory.write(address, bytes); });
  if (!loaded) {
    memory.free_all();
    log = loaded.error().message;
    return refuse(loaded.error().code == ErrorCode::ResourceExhausted ? CUDA_ERROR_OUT_OF_MEMORY
                                                                      : CUDA_ERROR_INVALID_PTX);
  }
  return std::make_shared<Module>(process, context, std::move(*loaded), std::move(memory.allocated));
}

Module::Module(Process& process, CUcontext context, std::shared_ptr<const LoadedModule> loaded,
               std::vector<std::uint64_t> variables)
    : process_(process), context_(context), loaded_(std::move(loaded)), variables_(std::move(variables)) {}

Module::~Module() {
  for (const std::uint64_t address : variables_) process_.memory().free(address, AllocationKind::Device);
}

Answer<CUfunction> Module::function(const std::string& name) {
  const Kernel* kernel = loaded_->find_kernel(name);
  if (kernel == nullptr) return refuse(CUDA_ERROR_NOT_FOUND);
  const std::lock_guard lock(mutex_);
  CUfunction& known = functions_[name];
  if (known == nullptr) {
    known = reinterpret_cast<CUfunction>(
        process_.functions().add(std::make_shared<Function>(handle(), context_, loaded_, *kernel)));
  }
  return known;
}

void Module::forget_functions() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, function] : functions_) process_.functions().remove(function);
  functions_.clear();
}

}  // namespace firebreak::softgpu::driver
