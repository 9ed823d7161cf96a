// SPDX-License-Identifier: Apache-2.0
/// This class stands behind the Kernel interface.
#pragma once

#include "softgpu/interpreter/interpreter.h"
#include "softgpu/interpreter/micro_op.h"
#include "softgpu/interpreter/module_layout.h"

namespace firebreak::softgpu {

/// A kernel has its own decoding of every function it reaches: shared variables lie elsewhere in each kernel.
class DecodedKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<DecodedKernel>> decode(const ptx::Module& module, std::uint32_t entry,
                                                       const AddressLayout& addresses);

  const std::string& name() const override { return entry().name; }
  std::span<const KernelParameter> parameters() const override { return parameters_; }
  std::uint32_t static_shared_bytes() const override { return shared_.static_bytes; }
  std::uint32_t local_bytes() const override { return entry().local_bytes; }
  std::uint32_t register_count() const override;
  std::uint32_t max_threads_per_block() const override { return max_threads_per_block_; }
  bool writes_memory() const override { return writes_memory_; }

  const ModuleCode& code() const { return code_; }
  const FunctionCode& entry() const { return code_.functions[entry_]; }
  std::uint32_t parameter_bytes() const { return parameter_bytes_; }
  std::uint32_t dynamic_shared_offset() const { return shared_.dynamic_offset; }

 private:
  ModuleCode code_;
  std::uint32_t entry_ = 0;
  std::vector<KernelParameter> parameters_;
  std::uint32_t parameter_bytes_ = 0;
  std::uint32_t max_threads_per_block_ = 0;
  SharedLayout shared_;
  bool writes_memory_ = false;
};

}  // namespace firebreak::softgpu
