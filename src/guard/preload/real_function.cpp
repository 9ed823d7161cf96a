// SPDX-License-Identifier: Apache-2.0
#include "guard/preload/real_function.h"

#include "guard/preload/process_guard.h"
#include "os/library.h"

namespace firebreak::guard {

void* real_symbol(const char* name) {
  if (ProcessGuard* const process = ProcessGuard::get()) return process->real<void*>(name);
  const Bypass bypass;
  const auto symbol = os::load_symbol("libcuda.so.1", name);
  return symbol ? *symbol : nullptr;
}

LaunchWords* words_of_process() {
  ProcessGuard* const process = ProcessGuard::get();
  return process == nullptr ? nullptr : process->words();
}

LaunchWords* existing_words() {
  ProcessGuard* const process = ProcessGuard::existing();
  return process == nullptr ? nullptr : process->words();
}

}  // namespace firebreak::guard
