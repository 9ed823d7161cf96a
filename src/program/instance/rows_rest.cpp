// SPDX-License-Identifier: Apache-2.0
/// Rows of the table of imports: the environment, and other libraries.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ground/os/library_behind.h"
#include "program/instance/imports.h"
#include "program/instance/rows.h"

namespace firebreak::instance::rows {
namespace {

/// NVIDIA's debugger library, which a driver loads when it is to write a core dump.
constexpr std::string_view debugger_name = "libcudadebugger.so";

bool is_debugger(const char* file) {
  const std::string_view path(file == nullptr ? "" : file);
  return path.substr(path.rfind('/') + 1).starts_with(debugger_name);
}

/// Returns what a name that is asked for later leads to, where it has a row: NVIDIA's driver looks pipe2(),
/// eventfd() and others up by name and version (H200, driver 580.159.04: nine descriptors).
void* row_for(const Taken& taken, const char* name, void* found) {
  if (found == nullptr) return nullptr;
  std::size_t place = 0;
  while (place < places_max && (!is_taken(place) || &taken_at(place) != &taken)) ++place;
  for (const ImportRow& row : import_table()) {
    if (place < places_max && row.name == name && row.what != Import::Linker)
      return const_cast<void*>(row.entry(place));
  }
  return found;
}

}  // namespace

char* variable(Taken& taken, const char* name) {
  for (auto& [its_name, value] : taken.answers.variables) {
    if (its_name == name) return value.data();
  }
  return std::getenv(name);
}

/// NVIDIA's debugger says on standard error that it begins a core dump, and how more is to be heard of that.
/// A program that is in the mode by us has not asked for it, and goes on after its dump.
std::size_t write_text(Taken& taken, const void* from, std::size_t size_bytes, std::size_t count,
                       std::FILE* to) {
  constexpr std::string_view hint = "Starting GPU coredump generation, set the ";
  const auto is_dump_file = [](const auto& variable) { return variable.first == "CUDA_COREDUMP_FILE"; };
  const std::string_view text(static_cast<const char*>(from), size_bytes * count);
  const bool is_unasked =
      to == stderr && text.starts_with(hint) && std::ranges::any_of(taken.answers.variables, is_dump_file);
  return is_unasked ? count : std::fwrite(from, size_bytes, count, to);
}

/// The debugger looks through the process for a library that is called libcuda.so, and asks the first that it
/// finds: the program's own driver. So each copy of the driver gets a copy of the debugger, and that one is
/// answered by its own driver. Without this an instance that is no program's own wrote no dump in a parked
/// domain, and its calls answered CUDA_ERROR_UNKNOWN (H100, driver 580.159.04).
void* load_library(Taken& taken, const char* file, int flags) {
  if (is_debugger(file) && taken.load_debugger) {
    if (void* const debugger = taken.load_debugger(file)) return debugger;
  }
  void* const library = os::real_dlopen(file, flags);
  if (library != nullptr && library == taken.library) taken.references.fetch_add(1);
  return library;
}

void* find_symbol(Taken& taken, void* library, const char* name) {
  void* const found = os::real_dlsym(library, name);
  return library == taken.library ? found : row_for(taken, name, found);
}

void* find_symbol_for_debugger(Taken& taken, void* library, const char* name) {
  const bool is_drivers = name != nullptr && name[0] == 'c' && name[1] == 'u';
  return is_drivers ? os::real_dlsym(taken.library, name) : find_symbol(taken, library, name);
}

void* find_version(Taken& taken, void* library, const char* name, const char* version) {
  return row_for(taken, name, ::dlvsym(library, name, version));
}

/// The debugger's goes with the driver.
int unload_library(Taken& taken, void* library) {
  if (library == taken.debugger.load()) return 0;
  if (library == taken.library) taken.references.fetch_sub(1);
  return os::real_dlclose(library);
}

}  // namespace firebreak::instance::rows
