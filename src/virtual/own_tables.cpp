// SPDX-License-Identifier: Apache-2.0
/// Functions that the driver gives out in tables, and not by their names (abi/cuda_tables.h). They are the
/// anchor's: what they answer means the process, or memory that is looked into. But one of them is given a
/// module, which the program knows by another handle than the instance that works.
#include "abi/cuda_tables.h"

#include <string>
#include <vector>

#include "virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

using abi::CudaEachFunction;
using Words = std::vector<std::uintptr_t>;

/// More than any table has: what says so is none.
constexpr std::size_t largest_table_bytes = 1 << 16;

/// Empty: there is no such table, or it is shorter.
std::span<const std::uintptr_t> module_table(const cuda::Backend& driver) {
  const void* table = nullptr;
  if (driver.cuGetExportTable(&table, &abi::module_table_id) != CUDA_SUCCESS || table == nullptr) return {};
  const auto* const words = static_cast<const std::uintptr_t*>(table);
  const std::size_t count = *words / sizeof(std::uintptr_t);
  if (*words > largest_table_bytes || count <= abi::module_table_each_function) return {};
  return {words, count};
}

void take_one(void* all, CUfunction function) {
  static_cast<std::vector<CUfunction>*>(all)->push_back(function);
}

/// The program's handle of a function of that module; in another instance the module is asked for it by its
/// name.
CUfunction seen(const Turn& turn, CUfunction own, CUmodule module) {
  Object* object = turn.objects.find_own(Family::Code, number_of(own), turn.slot);
  const char* name = nullptr;
  if (object == nullptr && turn.driver.cuFuncGetName(&name, own) == CUDA_SUCCESS && name != nullptr) {
    const auto again = [module, known = std::string(name)](Making& making) {
      return making.driver.cuModuleGetFunction(reinterpret_cast<CUfunction*>(&making.made), making.in(module),
                                               known.c_str());
    };
    Object* const parent = turn.objects.find(Family::Module, number_of(module));
    object = &turn.objects.add(Family::Code, number_of(own), turn.slot, {{{}, again, current_context()}},
                               {parent, current_context()});
    turn.all.something_new();
  }
  if (object != nullptr) return reinterpret_cast<CUfunction>(object->seen);
  turn.all.stand_aside("its code has a function without a name");
  return own;
}

int each_function(CUcontext context, CUmodule module, void (*take)(void*, CUfunction), void* data) {
  std::vector<CUfunction> functions;
  int answered = 0;
  process()->call([&](const Turn& turn) {
    const auto table = module_table(turn.driver);
    if (table.empty()) return CUDA_ERROR_NOT_FOUND;
    const auto own = reinterpret_cast<CudaEachFunction>(table[abi::module_table_each_function]);
    answered = own(turn.objects.translate(context, turn.slot), turn.objects.translate(module, turn.slot),
                   &take_one, &functions);
    for (CUfunction& function : functions) function = seen(turn, function, module);
    if (trace() == Trace::Calls)
      std::fprintf(stderr, "firebreak: a module's functions: %zu, %d\n", functions.size(), answered);
    return CUDA_SUCCESS;
  });
  if (take != nullptr) {
    for (const CUfunction function : functions) take(data, function);
  }
  return answered;
}

}  // namespace

CUresult cuGetExportTable(const OwnCall& call, const void** table, const CUuuid* id) {
  const cuda::Backend& driver = call.all.own_driver();
  if (table == nullptr || id == nullptr || !abi::is_module_table(*id))
    return driver.cuGetExportTable(table, id);
  static const Words ours = [&] {
    const auto given = module_table(driver);
    Words copy(given.begin(), given.end());
    if (!copy.empty())
      copy[abi::module_table_each_function] = reinterpret_cast<std::uintptr_t>(&each_function);
    return copy;
  }();
  if (ours.empty()) return driver.cuGetExportTable(table, id);
  *table = ours.data();
  return CUDA_SUCCESS;
}

}  // namespace firebreak::virtual_driver::own
