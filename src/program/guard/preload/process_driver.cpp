// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/process_driver.h"

#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ground/os/self.h"
#include "program/guard/preload/orderly_end.h"
#include "program/guard/preload/process_guard.h"
#include "program/guard/say.h"
#include "program/record/front.h"
#include "program/virtual/calls.h"
#include "shared/abi/spare_page.h"

namespace firebreak::guard {
namespace {

thread_local bool bypassed = false;

constinit std::mutex finding;  ///< guards what follows, until it was found
constinit const cuda::Driver* known_library = nullptr;
constinit const cuda::Driver* seen_driver = nullptr;

void* symbol_of_library(void* library, const char* symbol) {
  return static_cast<const cuda::Driver*>(library)->symbol(symbol);
}

/// Finds symbols of a driver that is too old to be guarded.
void* symbol_of_any(void*, const char* symbol) {
  const auto found = os::load_symbol("libcuda.so.1", symbol);
  return found ? *found : nullptr;
}

/// Two empty ones where there is to be none.
std::array<std::string, 2> pair_in(const char* variable) {
  return abi::spare_pair(os::environment_variable(variable).value_or(""));
}

void undisturbed(const std::function<void()>& run) {
  const Bypass bypass;
  run();
}

void follow_with_guard() {
  ProcessGuard* const process = ProcessGuard::existing();
  if (process != nullptr) process->guard().follow_address_space();
}

void let_guard_rest() {
  ProcessGuard* const process = ProcessGuard::existing();
  if (process != nullptr) process->guard().leave_address_space();
}

bool is_marker(CUdeviceptr address) {
  ProcessGuard* const process = ProcessGuard::existing();
  const CompletionMarkers* const markers = process == nullptr ? nullptr : process->markers();
  return markers != nullptr && markers->is_marker(address);
}

/// True when the virtual driver stands in front of the program's own one from now on.
bool start_virtual_driver(const cuda::Backend& own_driver, const cuda::Driver& library) {
  auto domains = pair_in(abi::spare_variable);
  if (domains[0].empty()) return false;
  const auto path = os::library_of(library.symbol("cuInit"));
  if (!path) return false;
  virtual_driver::VirtualSettings settings;
  settings.library = *path;
  settings.domains = std::move(domains);
  settings.dumps = pair_in(abi::spare_dumps_variable);
  settings.undisturbed = &undisturbed;
  settings.moved = &follow_with_guard;
  settings.resting = &let_guard_rest;
  settings.is_marker = &is_marker;
  if (const auto redo = os::environment_variable(virtual_driver::redo_variable)) {
    const long us = std::strtol(redo->c_str(), nullptr, 10);
    if (us > 0) settings.between_marks = std::chrono::microseconds(us);
    if (us <= 0) settings.between_marks.reset();
  }
  // Never destroyed: other threads may use the driver until the process's very end.
  virtual_driver::set_process(new virtual_driver::VirtualProcess(own_driver, settings));
  os::run_in_children(&ProcessDriver::begin_anew);
  return true;
}

void record_launches(cuda::Backend& functions) {
  const auto folder = os::environment_variable(record::folder_variable);
  if (!folder) return;
  auto recording = record::start_recording(functions, *folder);
  if (recording)
    functions = *recording;
  else
    say("launches are not recorded: " + to_string(recording.error()));
}

}  // namespace

Bypass::Bypass() : before_(std::exchange(bypassed, true)) {}
Bypass::~Bypass() { bypassed = before_; }
bool Bypass::active() { return bypassed; }

constinit std::atomic<bool> ProcessDriver::found_{false};
constinit cuda::Backend ProcessDriver::functions_{};

[[gnu::noinline, gnu::cold]] void ProcessDriver::find(const void* part_of) {
  const Bypass bypass;
  const std::lock_guard lock(finding);
  if (found_.load(std::memory_order_relaxed)) return;
  auto library = cuda::Driver::load(os::library_of(part_of).value_or(""));
  // Never destroyed: other threads may use the driver until the process's very end.
  if (library) known_library = library->release();
  // A program that asks for the driver where there is none is told so by its own CUDA.
  if (!library && library.error().code != ErrorCode::NotFound)
    say("the guard is off: " + to_string(library.error()));
  functions_ = known_library == nullptr
                   ? cuda::Backend::from(nullptr, &symbol_of_any)
                   : cuda::Backend::from(const_cast<cuda::Driver*>(known_library), &symbol_of_library);
  seen_driver = known_library;
  if (known_library != nullptr && start_virtual_driver(functions_, *known_library)) {
    functions_ = virtual_driver::backend();
    auto in_front = cuda::Driver::in_front_of(*known_library, functions_.cuGetProcAddress_v2);
    seen_driver = in_front ? in_front->release() : nullptr;
  }
  if (known_library != nullptr) record_launches(functions_);
  if (known_library != nullptr) end_orderly_at_sigterm();
  found_.store(true, std::memory_order_release);
}

const cuda::Driver* ProcessDriver::library(const void* part_of) {
  if (!found_.load(std::memory_order_acquire)) find(part_of);
  return known_library;
}

const cuda::Driver* ProcessDriver::seen(const void* part_of) {
  (void)library(part_of);
  return seen_driver;
}

void ProcessDriver::begin_anew() {
  new (&finding) std::mutex();
  virtual_driver::VirtualProcess::begin_anew();
}

}  // namespace firebreak::guard
