// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/instance.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "ground/os/self.h"
#include "program/virtual/address_keeping.h"
#include "program/virtual/addresses.h"

namespace firebreak::virtual_driver {
namespace {

void* symbol_of(void* library, const char* symbol) {
  return static_cast<const os::PrivateLibrary*>(library)->symbol(symbol);
}

constinit std::array<std::atomic<void*>, copies_max> libraries{};
constinit std::atomic<std::uint32_t> lives{0};

Status check(CUresult result, const std::string& call) {
  if (result == CUDA_SUCCESS) return {};
  return fail(ErrorCode::Unavailable, call + " answered " + std::to_string(result));
}

}  // namespace

void* instance_library(std::uint32_t copy) { return copy < copies_max ? libraries[copy].load() : nullptr; }

Status Instance::load() {
  auto library = os::PrivateLibrary::load(settings_.library, settings_.copy);
  if (!library) return propagate(library, "another instance of the driver");
  libraries[settings_.copy].store(library->handle());
  driver_ = cuda::Backend::from(&*library, &symbol_of);
  return {};
}

os::EnvironmentScope::Variables environment_in(const std::string& pipe_directory,
                                               const std::string& dump_path) {
  os::EnvironmentScope::Variables variables{{"CUDA_MPS_PIPE_DIRECTORY", pipe_directory}};
  if (!dump_path.empty()) variables.emplace_back("CUDA_COREDUMP_FILE", dump_path);
  return variables;
}

/// One that begins again may have kept what it had.
Status Instance::with_descriptors(Status (Instance::*come_up)()) {
  if (settings_.uvm_descriptors == nullptr) return (this->*come_up)();
  const std::vector<int> before = settings_.uvm_descriptors();
  const Status done = (this->*come_up)();
  const std::vector<int> after = settings_.uvm_descriptors();
  const auto has = [](const std::vector<int>& all, int one) { return std::ranges::count(all, one) != 0; };
  std::erase_if(uvm_descriptors_, [&](int each) { return !has(after, each); });
  for (const int each : after) {
    if (!has(before, each) && !has(uvm_descriptors_, each)) uvm_descriptors_.push_back(each);
  }
  return done;
}

Status Instance::start() {
  const os::EnvironmentScope of_domain(environment_in(settings_.pipe_directory, settings_.dump_path));
  const ComingUp coming_up(settings_.copy);
  if (const Status done = check(driver_.cuInit(0), "cuInit"); !done) return done;
  return make_context();
}

Status Instance::come_up_again() {
  const os::EnvironmentScope of_domain(environment_in(settings_.pipe_directory, settings_.dump_path));
  const ComingUp coming_up(settings_.copy);
  return make_context();
}

Status Instance::begin_again() { return with_descriptors(&Instance::come_up_again); }

Status Instance::make_context() {
  if (const Status done = check(driver_.cuDevicePrimaryCtxRetain(&primary_, 0), "cuDevicePrimaryCtxRetain");
      !done)
    return done;
  if (const Status done = check(driver_.cuCtxSetCurrent(primary_), "cuCtxSetCurrent"); !done) return done;
  if (const Status done = check(driver_.cuMemAlloc_v2(&scratch_, sizeof(std::uint32_t)), "cuMemAlloc"); !done)
    return done;
  if (!reserve_window()) {
    return fail(ErrorCode::Unsupported,
                "another instance of the driver does not get the addresses of the first");
  }
  life_.store(lives.fetch_add(1) + 1, std::memory_order_release);
  return {};
}

/// It is no context's, so one that begins again may have it still.
bool Instance::reserve_window() {
  CUdeviceptr window = 0;
  const CUresult reserved = driver_.cuMemAddressReserve(&window, window_bytes, 0, window_begin, 0);
  if (reserved == CUDA_SUCCESS && window != window_begin) driver_.cuMemAddressFree(window, window_bytes);
  has_window_ = has_window_ || (reserved == CUDA_SUCCESS && window == window_begin);
  return has_window_;
}

Result<std::unique_ptr<Instance>> Instance::bring_up(const InstanceSettings& settings) {
  std::unique_ptr<Instance> made(new Instance(settings));
  if (const Status loaded = made->load(); !loaded) return propagate(loaded);
  if (const Status started = made->with_descriptors(&Instance::start); !started) {
    if (made->primary_ != nullptr) (void)made->reset();  // what it has on the GPU
    return propagate(started);
  }
  return made;
}

std::unique_ptr<Instance> Instance::of(const cuda::Backend& driver, Slot slot) {
  std::unique_ptr<Instance> made(new Instance(InstanceSettings{{}, {}, slot}));
  made->driver_ = driver;
  return made;
}

bool Instance::is_alive() const {
  return driver_.cuCtxSetCurrent(primary_) == CUDA_SUCCESS &&
         driver_.cuMemsetD32_v2(scratch_, 0, 1) == CUDA_SUCCESS && driver_.cuCtxSynchronize() == CUDA_SUCCESS;
}

CUresult Instance::reset() const { return driver_.cuDevicePrimaryCtxReset_v2(0); }

}  // namespace firebreak::virtual_driver
