// SPDX-License-Identifier: Apache-2.0
/// Functions that the driver gives out in tables, and not by their names (shared/abi/cuda_tables.h). They are
/// the anchor's: what they answer means the process, or memory that is looked into. But some of them are
/// given what the program knows by another handle than the instance that works, or come from that.
#include "shared/abi/cuda_tables.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

using Words = std::vector<std::uintptr_t>;

/// More than any table has: what says so is none.
constexpr std::size_t largest_table_bytes = 1 << 16;

/// Empty: there is no such table, or it does not reach to that word.
std::span<const std::uintptr_t> table_of(const cuda::Backend& driver, const CUuuid& id, std::size_t word) {
  const void* table = nullptr;
  if (driver.cuGetExportTable(&table, &id) != CUDA_SUCCESS || table == nullptr) return {};
  const auto* const words = static_cast<const std::uintptr_t*>(table);
  const std::size_t count = *words / sizeof(std::uintptr_t);
  if (*words > largest_table_bytes || count <= word) return {};
  return {words, count};
}

void take_one(void* all, CUfunction function) {
  static_cast<std::vector<CUfunction>*>(all)->push_back(function);
}

template <class Function>
Function function_in(const cuda::Backend& driver, const CUuuid& id, std::size_t word) {
  const auto table = table_of(driver, id, word);
  return table.empty() ? nullptr : reinterpret_cast<Function>(table[word]);
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
    const auto own = function_in<abi::CudaEachFunction>(turn.driver, abi::module_table_id,
                                                        abi::module_table_each_function);
    if (own == nullptr) return CUDA_ERROR_NOT_FOUND;
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

CUresult context_number(CUcontext context, std::uint64_t* number) {
  return process()->call([&](const Turn& turn) {
    const auto own =
        function_in<abi::CudaContextNumber>(turn.driver, abi::stream_table_id, abi::stream_table_context);
    return own == nullptr ? CUDA_ERROR_NOT_FOUND : own(turn.objects.translate(context, turn.slot), number);
  });
}

/// A stream whose object the program has asked for.
struct AskedStream {
  const void* object = nullptr;  ///< the answer
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  int of_thread = 0;
};

/// The last one of this thread. cuBLAS asks for a word of the object next; there may be a move between the
/// two.
thread_local AskedStream asked;

CUresult object_in(const Turn& turn, const AskedStream& of, void** object) {
  const auto own =
      function_in<abi::CudaStreamObject>(turn.driver, abi::stream_table_id, abi::stream_table_object);
  if (own == nullptr) return CUDA_ERROR_NOT_FOUND;
  return own(turn.objects.translate(of.context, turn.slot), turn.objects.translate(of.stream, turn.slot),
             object, of.of_thread);
}

CUresult stream_object(CUcontext context, CUstream stream, void** object, int of_thread) {
  AskedStream of{nullptr, context, stream, of_thread};
  const CUresult result = process()->call([&](const Turn& turn) { return object_in(turn, of, object); });
  if (result != CUDA_SUCCESS || object == nullptr) return result;
  of.object = *object;
  asked = of;
  return result;
}

CUresult stream_word(CUcontext context, void* object, std::uint64_t* word) {
  return process()->call([&](const Turn& turn) {
    const auto own =
        function_in<abi::CudaStreamWord>(turn.driver, abi::stream_table_id, abi::stream_table_word);
    if (own == nullptr) return CUDA_ERROR_NOT_FOUND;
    void* here = object;
    if (object != nullptr && object == asked.object) {
      if (const CUresult gone = object_in(turn, asked, &here); gone != CUDA_SUCCESS) return gone;
    }
    return own(turn.objects.translate(context, turn.slot), here, word);
  });
}

/// One that stands in the place of the driver's.
struct OurTable {
  CUuuid id;
  Words words;  ///< empty: the driver has none such
};

struct OurWord {
  std::size_t word;
  std::uintptr_t function;
};

template <class Function>
OurWord at(std::size_t word, Function* ours) {
  return {word, reinterpret_cast<std::uintptr_t>(ours)};
}

OurTable with_ours(const cuda::Backend& driver, const CUuuid& id, const std::vector<OurWord>& ours) {
  const auto given = table_of(driver, id, std::ranges::max(ours, {}, &OurWord::word).word);
  OurTable table{id, {given.begin(), given.end()}};
  if (table.words.empty()) return table;
  for (const OurWord& each : ours) table.words[each.word] = each.function;
  return table;
}

}  // namespace

CUresult cuGetExportTable(const OwnCall& call, const void** table, const CUuuid* id) {
  const cuda::Backend& driver = call.all.own_driver();
  if (table == nullptr || id == nullptr) return driver.cuGetExportTable(table, id);
  static const std::array ours = {
      with_ours(driver, abi::module_table_id, {at(abi::module_table_each_function, &each_function)}),
      with_ours(driver, abi::stream_table_id,
                {at(abi::stream_table_context, &context_number), at(abi::stream_table_object, &stream_object),
                 at(abi::stream_table_word, &stream_word)}),
  };
  for (const OurTable& each : ours) {
    if (!abi::is(*id, each.id) || each.words.empty()) continue;
    *table = each.words.data();
    return CUDA_SUCCESS;
  }
  return driver.cuGetExportTable(table, id);
}

}  // namespace firebreak::virtual_driver::own
