// SPDX-License-Identifier: Apache-2.0
/// Tests use this GPU: an AddressSpace with buffers in host memory, and launches on the calling thread.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ptx/parse.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu::testing {

/// Never asks to stop, unless told.
class QuietControl : public ExecutionControl {
 public:
  bool should_stop() override { return stop; }
  std::atomic<bool> stop{false};
};

class TestGpu {
 public:
  static constexpr std::uint64_t first_address = 0x7000'0000'0000;

  /// The address of that many zeroed, mapped bytes; unmapped space follows.
  std::uint64_t allocate(std::uint64_t size_bytes, PageAccess access = PageAccess::ReadWrite) {
    auto owner = std::make_shared<std::vector<std::uint64_t>>((size_bytes + 15) / 8 + 2);
    Translation range;
    range.begin = next_;
    range.end = next_ + size_bytes;
    range.host = reinterpret_cast<std::byte*>(owner->data());
    range.access = access;
    range.keep_alive = owner;
    next_ += (size_bytes + 0x1F'FFFF) / 0x10'0000 * 0x10'0000;
    EXPECT_TRUE(memory.map(range));
    return range.begin;
  }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(values.size() * sizeof(T));
    write(address, values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory.find(address)->host + (address - memory.find(address)->begin),
                count * sizeof(T));
    return values;
  }
  void write(std::uint64_t address, const void* bytes, std::size_t size_bytes) {
    std::memcpy(memory.find(address)->host + (address - memory.find(address)->begin), bytes, size_bytes);
  }

  Result<std::shared_ptr<const LoadedModule>> load(const std::string& ptx) {
    auto parsed = ptx::parse(ptx);
    if (!parsed) return tl::unexpected(parsed.error());
    return LoadedModule::load(
        *std::move(parsed),
        [this](std::uint64_t size, std::uint64_t) -> Result<std::uint64_t> { return allocate(size); },
        [this](std::uint64_t address, std::span<const std::byte> bytes) -> Status {
          write(address, bytes.data(), bytes.size());
          return {};
        });
  }

  /// Loads the text, which must be good.
  void use(const std::string& ptx) {
    auto loaded = load(ptx);
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    module = *std::move(loaded);
  }

  template <class... Arguments>
  Launch prepare(const std::string& kernel, Dimensions grid, Dimensions block, Arguments... arguments) {
    Launch launch;
    launch.module = module;
    launch.kernel = module->find_kernel(kernel);
    EXPECT_NE(launch.kernel, nullptr) << kernel;
    launch.grid = grid;
    launch.block = block;
    std::size_t index = 0;
    (put(launch, index++, &arguments, sizeof(arguments)), ...);
    return launch;
  }
  template <class... Arguments>
  LaunchOutcome run(const std::string& kernel, Dimensions grid, Dimensions block, Arguments... arguments) {
    return run_launch(prepare(kernel, grid, block, arguments...), memory, control);
  }
  /// The same; anything but completion fails the test.
  template <class... Arguments>
  std::uint64_t complete(const std::string& kernel, Dimensions grid, Dimensions block,
                         Arguments... arguments) {
    return expect_completed(run(kernel, grid, block, arguments...));
  }
  static std::uint64_t expect_completed(const LaunchOutcome& outcome) {
    if (const auto* fault = std::get_if<GpuFault>(&outcome)) {
      ADD_FAILURE() << to_string(fault->kind) << " at 0x" << std::hex << fault->address << std::dec
                    << " line " << fault->ptx_line;
    }
    const auto* completed = std::get_if<Completed>(&outcome);
    EXPECT_NE(completed, nullptr);
    return completed == nullptr ? 0 : completed->instructions;
  }

  AddressSpace memory;
  QuietControl control;
  std::shared_ptr<const LoadedModule> module;

 private:
  static void put(Launch& launch, std::size_t index, const void* value, std::size_t size_bytes) {
    const auto parameters = launch.kernel->parameters();
    ASSERT_LT(index, parameters.size());
    ASSERT_EQ(parameters[index].size_bytes, size_bytes) << "parameter " << index;
    const std::size_t end = parameters[index].offset_bytes + size_bytes;
    if (launch.parameters.size() < end) launch.parameters.resize(end);
    std::memcpy(launch.parameters.data() + parameters[index].offset_bytes, value, size_bytes);
  }

  std::uint64_t next_ = first_address;
};

inline const std::string ptx_header = ".version 8.0\n.target sm_90\n.address_size 64\n";

}  // namespace firebreak::softgpu::testing
