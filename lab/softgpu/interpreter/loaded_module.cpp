// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/loaded_module.h"

#include <algorithm>
#include <map>

#include "softgpu/interpreter/decode.h"

namespace firebreak::softgpu {

namespace {

constexpr std::uint32_t most_threads_per_block = 1024;
constexpr std::uint32_t most_registers = 255;

std::uint32_t thread_limit(const ptx::LaunchBounds& bounds) {
  const auto product = [](const std::array<std::uint32_t, 3>& sizes) {
    return std::uint64_t{sizes[0]} * std::max(sizes[1], 1U) * std::max(sizes[2], 1U);
  };
  std::uint64_t limit = most_threads_per_block;
  if (bounds.maxntid[0] != 0) limit = std::min(limit, product(bounds.maxntid));
  if (bounds.reqntid[0] != 0) limit = std::min(limit, product(bounds.reqntid));
  return static_cast<std::uint32_t>(limit);
}

class DecodedModule final : public LoadedModule {
 public:
  Status add_kernels(const ptx::Module& module, const AddressLayout& addresses) {
    for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
      const ptx::Function& function = module.functions[i];
      if (!function.is_entry || !function.has_body) continue;
      auto kernel = DecodedKernel::decode(module, i, addresses);
      if (!kernel) return tl::unexpected(kernel.error());
      kernels_.emplace(function.name, *std::move(kernel));
    }
    return {};
  }
  void add_variables(const ptx::Module& module, const AddressLayout& addresses) {
    for (std::size_t i = 0; i < module.variables.size(); ++i) {
      const ptx::Variable& variable = module.variables[i];
      const bool has_address =
          variable.space == ptx::StateSpace::Global || variable.space == ptx::StateSpace::Const;
      if (has_address) variables_[variable.name] = {addresses.module_variables[i], variable.size_bytes};
    }
  }

  const Kernel* find_kernel(std::string_view name) const override {
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : found->second.get();
  }
  std::vector<std::string> kernel_names() const override {
    std::vector<std::string> names;
    for (const auto& [name, kernel] : kernels_) names.push_back(name);
    return names;
  }
  std::optional<Variable> find_variable(std::string_view name) const override {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, std::unique_ptr<DecodedKernel>, std::less<>> kernels_;
  std::map<std::string, Variable, std::less<>> variables_;
};

}  // namespace

std::uint32_t DecodedKernel::register_count() const {
  return std::min(entry().register_count, most_registers);
}

namespace {

bool stores_globally(const ptx::Instruction& instruction) {
  using ptx::Opcode;
  const bool stores = instruction.opcode == Opcode::St || instruction.opcode == Opcode::Atom ||
                      instruction.opcode == Opcode::Red;
  const ptx::StateSpace space = instruction.modifiers.space;
  return stores && (space == ptx::StateSpace::Global || space == ptx::StateSpace::None);
}

}  // namespace

Result<std::unique_ptr<DecodedKernel>> DecodedKernel::decode(const ptx::Module& module, std::uint32_t entry,
                                                             const AddressLayout& addresses) {
  auto kernel = std::make_unique<DecodedKernel>();
  const std::vector<bool> reachable = reachable_functions(module, entry);
  AddressLayout own = addresses;
  kernel->shared_ = place_shared(module, reachable, own);
  kernel->code_.functions.resize(module.functions.size());
  ConstantPool constants;
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    if (!reachable[i]) continue;
    auto function = FunctionDecoder(module, i, own, constants).decode();
    if (!function) return tl::unexpected(function.error());
    kernel->code_.functions[i] = *std::move(function);
    kernel->writes_memory_ =
        kernel->writes_memory_ || std::ranges::any_of(module.functions[i].instructions, stores_globally);
  }
  kernel->code_.constants = constants.take();
  kernel->entry_ = entry;
  const ptx::Function& function = module.functions[entry];
  for (const ptx::Parameter& parameter : function.parameters) {
    kernel->parameters_.push_back({static_cast<std::uint32_t>(parameter.offset_bytes),
                                   static_cast<std::uint32_t>(parameter.size_bytes)});
  }
  kernel->parameter_bytes_ = static_cast<std::uint32_t>(function.parameter_bytes);
  kernel->max_threads_per_block_ = thread_limit(function.bounds);
  return kernel;
}

Result<std::shared_ptr<const LoadedModule>> LoadedModule::load(ptx::Module module,
                                                               const AllocateGlobal& allocate,
                                                               const WriteGlobal& write) {
  const auto addresses = place_variables(module, allocate, write);
  if (!addresses) return tl::unexpected(addresses.error());
  auto loaded = std::make_shared<DecodedModule>();
  if (Status status = loaded->add_kernels(module, *addresses); !status) return tl::unexpected(status.error());
  loaded->add_variables(module, *addresses);
  return std::shared_ptr<const LoadedModule>(std::move(loaded));
}

}  // namespace firebreak::softgpu
