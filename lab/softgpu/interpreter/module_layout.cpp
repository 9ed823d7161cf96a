// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/module_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "softgpu/interpreter/generic_windows.h"

namespace firebreak::softgpu {

namespace {

using ptx::StateSpace;
using ptx::SymbolKind;
using ptx::Variable;

bool in_global_memory(const Variable& variable) {
  return variable.space == StateSpace::Global || variable.space == StateSpace::Const;
}

Result<std::uint64_t> place_variable(const Variable& variable, const LoadedModule::AllocateGlobal& allocate) {
  if (variable.linkage == ptx::Linkage::Extern) {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("line {}: {} is defined in another module", variable.location.line, variable.name),
        "link the modules before loading them");
  }
  return allocate(std::max<std::uint64_t>(variable.size_bytes, 1),
                  std::max<std::uint32_t>(variable.alignment_bytes, 1));
}

std::uint64_t relocated_value(const ptx::Relocation& relocation, const AddressLayout& addresses) {
  const bool is_function = relocation.symbol.kind == SymbolKind::Function;
  const std::uint64_t base = is_function ? code_base + relocation.symbol.index * code_address_step
                                         : addresses.module_variables[relocation.symbol.index];
  return (base + static_cast<std::uint64_t>(relocation.addend)) >> relocation.shift_bits;
}

Status write_initial(const Variable& variable, std::uint64_t address, const AddressLayout& addresses,
                     const LoadedModule::WriteGlobal& write) {
  std::vector<std::byte> bytes = variable.initial;
  for (const ptx::Relocation& relocation : variable.relocations) {
    const std::size_t end = relocation.offset_bytes + relocation.size_bytes;
    if (bytes.size() < end) bytes.resize(end);
    const std::uint64_t value = relocated_value(relocation, addresses);
    std::memcpy(bytes.data() + relocation.offset_bytes, &value,
                std::min<std::size_t>(relocation.size_bytes, 8));
  }
  return bytes.empty() ? Status{} : write(address, bytes);
}

/// Calls visit(symbol) for every symbol an instruction names.
template <class Visit>
void each_symbol(const ptx::Function& function, Visit visit) {
  for (const ptx::Instruction& instruction : function.instructions) {
    for (const ptx::Operand& operand : instruction.operands) visit(operand.symbol);
  }
}

std::vector<std::uint32_t> functions_with_address(const ptx::Module& module) {
  std::vector<std::uint32_t> found;
  const auto note = [&](const ptx::Symbol& symbol) {
    if (symbol.kind == SymbolKind::Function) found.push_back(symbol.index);
  };
  const auto note_variable = [&](const Variable& variable) {
    for (const ptx::Relocation& relocation : variable.relocations) note(relocation.symbol);
  };
  for (const Variable& variable : module.variables) note_variable(variable);
  for (const ptx::Function& function : module.functions) {
    for (const Variable& variable : function.variables) note_variable(variable);
    each_symbol(function, note);
  }
  return found;
}

class SharedPlacer {
 public:
  explicit SharedPlacer(SharedLayout& layout) : layout_(layout) {}
  /// The offset of a variable with a size; of dynamic shared memory only the alignment is noted.
  std::uint64_t place(const Variable& variable) {
    const std::uint32_t alignment = std::max<std::uint32_t>(variable.alignment_bytes, 1);
    largest_alignment_ = std::max(largest_alignment_, alignment);
    layout_.static_bytes = (layout_.static_bytes + alignment - 1) / alignment * alignment;
    const std::uint64_t offset = layout_.static_bytes;
    layout_.static_bytes += static_cast<std::uint32_t>(variable.size_bytes);
    return offset;
  }
  void close() {
    const std::uint32_t alignment = std::max(largest_alignment_, 16U);
    layout_.dynamic_offset = (layout_.static_bytes + alignment - 1) / alignment * alignment;
  }

 private:
  SharedLayout& layout_;
  std::uint32_t largest_alignment_ = 1;
};

}  // namespace

Result<AddressLayout> place_variables(const ptx::Module& module, const LoadedModule::AllocateGlobal& allocate,
                                      const LoadedModule::WriteGlobal& write) {
  AddressLayout addresses;
  struct Placed {
    const Variable* variable;
    std::uint64_t address;
  };
  std::vector<Placed> placed;
  const auto place_all = [&](const std::vector<Variable>& variables,
                             std::vector<std::uint64_t>& into) -> Status {
    into.resize(variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (!in_global_memory(variables[i])) continue;
      const auto address = place_variable(variables[i], allocate);
      if (!address) return tl::unexpected(address.error());
      into[i] = *address;
      placed.push_back({&variables[i], *address});
    }
    return {};
  };
  if (Status status = place_all(module.variables, addresses.module_variables); !status) {
    return tl::unexpected(status.error());
  }
  addresses.function_variables.resize(module.functions.size());
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    Status status = place_all(module.functions[i].variables, addresses.function_variables[i]);
    if (!status) return tl::unexpected(status.error());
  }
  for (const Placed& each : placed) {
    Status status = write_initial(*each.variable, each.address, addresses, write);
    if (!status) return tl::unexpected(status.error());
  }
  return addresses;
}

std::vector<bool> reachable_functions(const ptx::Module& module, std::uint32_t entry) {
  std::vector<bool> reached(module.functions.size());
  std::vector<std::uint32_t> open = {entry};
  bool indirect = false;
  while (!open.empty()) {
    const std::uint32_t index = open.back();
    open.pop_back();
    const ptx::Function& function = module.functions[index];
    if (reached[index] || !function.has_body) continue;
    reached[index] = true;
    for (const ptx::Call& call : function.calls) {
      if (call.function_index != ptx::no_index) {
        open.push_back(call.function_index);
      } else if (!std::exchange(indirect, true)) {
        for (const std::uint32_t target : functions_with_address(module)) open.push_back(target);
      }
    }
  }
  return reached;
}

SharedLayout place_shared(const ptx::Module& module, const std::vector<bool>& reachable,
                          AddressLayout& addresses) {
  std::vector<bool> used(module.variables.size());
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    if (!reachable[i]) continue;
    each_symbol(module.functions[i], [&](const ptx::Symbol& symbol) {
      if (symbol.kind == SymbolKind::ModuleVariable) used[symbol.index] = true;
    });
  }
  SharedLayout layout;
  SharedPlacer placer(layout);
  std::vector<std::uint64_t*> dynamic;
  const auto place = [&](const Variable& variable, std::uint64_t& address) {
    if (variable.space != StateSpace::Shared) return;
    address = placer.place(variable);
    if (variable.size_bytes == 0) dynamic.push_back(&address);
  };
  for (std::size_t i = 0; i < module.variables.size(); ++i) {
    if (used[i]) place(module.variables[i], addresses.module_variables[i]);
  }
  for (std::size_t i = 0; i < module.functions.size(); ++i) {
    if (!reachable[i]) continue;
    const std::vector<Variable>& variables = module.functions[i].variables;
    for (std::size_t k = 0; k < variables.size(); ++k)
      place(variables[k], addresses.function_variables[i][k]);
  }
  placer.close();
  for (std::uint64_t* const address : dynamic) *address = layout.dynamic_offset;
  return layout;
}

}  // namespace firebreak::softgpu
