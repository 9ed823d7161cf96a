// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/replacements.h"

#include <cstdio>
#include <string>

#include "ground/os/library_name.h"
#include "ground/os/self.h"
#include "program/guard/preload/process_driver.h"
#include "program/guard/preload/process_guard.h"
#include "program/guard/preload/ways.h"
#include "program/record/front.h"
#include "program/virtual/calls.h"
#include "program/virtual/inside_call.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_driver.h"

namespace firebreak::guard {
namespace {

/// Returns the function behind a symbol, or behind its per-thread one. Null: no function of the driver's,
/// whatever else begins with "cu".
const abi::CudaFunction* function_behind(std::string_view symbol) {
  const abi::CudaFunction* const function = abi::cuda_function_of_symbol(symbol);
  if (function != nullptr || !(symbol.ends_with("_ptsz") || symbol.ends_with("_ptds"))) return function;
  const abi::CudaFunction* const plain = abi::cuda_function_of_symbol(symbol.substr(0, symbol.size() - 5));
  return plain != nullptr && plain->per_thread_symbol == symbol ? plain : nullptr;
}

/// A library between the program and the driver has functions of the same names. Whoever asks for one of
/// these gets that one, which asks for the driver's itself.
bool is_of_driver(const void* found) { return os::own_name_of_library(found) == "libcuda.so.1"; }

Replacement replacement_of(const abi::CudaFunction* function) {
  if (function == nullptr) return {};
  return replacements()[static_cast<std::size_t>(function - abi::cuda_functions().data())];
}

/// Nothing is counted in front of the virtual driver.
bool is_wanted(const abi::CudaFunction* function, const void* ours) {
  if (function == nullptr || ours == nullptr) return false;
  return virtual_driver::process() == nullptr || way_of(*function).kind == Way::Kind::own;
}

}  // namespace

/// A caller that asks for the first of that name among all libraries finds ours, of all functions of the
/// driver's.
bool is_ours(const void* found) {
  const auto library = os::library_of(found);
  return library && *library == os::library_of(reinterpret_cast<const void*>(&is_ours)).value_or("");
}

void* replacement_of_symbol(std::string_view name, const void* found) {
  const abi::CudaFunction* const function = function_behind(name);
  if (virtual_driver::trace() == virtual_driver::Trace::Calls) {
    std::fprintf(stderr, "firebreak: looked up %s in %s%s\n", std::string(name).c_str(),
                 os::library_of(found).value_or("?").c_str(), function == nullptr ? ", not known here" : "");
  }
  if (function == nullptr) return nullptr;
  if (is_ours(found) || virtual_driver::InsideCall::active() || !is_of_driver(found)) return nullptr;
  (void)ProcessDriver::library(found);
  const Replacement each = replacement_of(function);
  void* const ours = function->symbol == name ? each.function : each.per_thread;
  if (is_wanted(function, ours) && ProcessGuard::get(found) != nullptr) return ours;
  if (void* const recording = record::recording_symbol(name)) return recording;
  return virtual_driver::process() == nullptr ? nullptr : virtual_driver::stub_of_symbol(name);
}

void* replacement_of_entry_point(std::string_view name, int cuda_version, std::uint64_t flags) {
  const abi::CudaFunction* const function = abi::cuda_function_at(name, cuda_version);
  const Replacement ours = replacement_of(function);
  if (!is_wanted(function, ours.function) || ProcessGuard::get() == nullptr) {
    if (void* const recording = record::recording_entry_point(name, cuda_version, flags)) return recording;
    return virtual_driver::process() == nullptr
               ? nullptr
               : virtual_driver::stub_of_entry_point(name, cuda_version, flags);
  }
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  return per_thread && ours.per_thread != nullptr ? ours.per_thread : ours.function;
}

}  // namespace firebreak::guard
