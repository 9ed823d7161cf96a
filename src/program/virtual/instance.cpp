// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/instance.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <utility>

#include "ground/os/self.h"
#include "program/virtual/addresses.h"

namespace firebreak::virtual_driver {
namespace {

void* symbol_of(void* copy, const char* symbol) {
  return static_cast<const instance::DriverCopy*>(copy)->symbol(symbol);
}

constinit std::atomic<std::uint32_t> lives{0};

/// A descriptor that a driver exports is whoever's asked for it, and stays where that driver goes. Each slot has a
/// function of its own, since the driver's has no other word of who asks.
struct Exports {
  instance::DriverCopy* copy = nullptr;
  decltype(cuda::Backend::cuMemExportToShareableHandle) own = nullptr;
};
constinit std::array<Exports, slots_max> exports_of{};

template <Slot slot>
CUresult export_and_let_go(void* handle, CUmemGenericAllocationHandle memory, CUmemAllocationHandleType type,
                           unsigned long long flags) {
  const CUresult result = exports_of[slot].own(handle, memory, type, flags);
  if (result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    exports_of[slot].copy->let_go(*static_cast<const int*>(handle));
  return result;
}

template <Slot... slot>
constexpr auto exports_at(std::integer_sequence<Slot, slot...>) {
  return std::array{&export_and_let_go<slot>...};
}
constexpr auto export_at = exports_at(std::make_integer_sequence<Slot, slots_max>());

Status check(CUresult result, const std::string& call) {
  if (result == CUDA_SUCCESS) return {};
  return fail(ErrorCode::Unavailable, call + " answered " + std::to_string(result));
}

}  // namespace

Status Instance::load() {
  auto copy = instance::DriverCopy::load(settings_.library, environment_in(settings_.pipe_directory, settings_.dump_path));
  if (!copy) return propagate(copy, "another instance of the driver");
  copy_ = std::move(*copy);
  driver_ = cuda::Backend::from(copy_.get(), &symbol_of);
  exports_of[settings_.slot] = {copy_.get(), driver_.cuMemExportToShareableHandle};
  driver_.cuMemExportToShareableHandle = export_at[settings_.slot];
  return {};
}

os::EnvironmentScope::Variables environment_without_dumps() {
  return {{"CUDA_COREDUMP_FILE", no_dump},
          {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0"},
          {"CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "0"}};
}

os::EnvironmentScope::Variables environment_in(const std::string& pipe_directory,
                                               const std::string& dump_path) {
  os::EnvironmentScope::Variables variables{{"CUDA_MPS_PIPE_DIRECTORY", pipe_directory}};
  if (dump_path == no_dump) std::ranges::copy(environment_without_dumps(), std::back_inserter(variables));
  else if (!dump_path.empty()) variables.emplace_back("CUDA_COREDUMP_FILE", dump_path);
  return variables;
}

Status Instance::start() {
  if (const Status done = check(driver_.cuInit(0), "cuInit"); !done) return done;
  return make_context();
}

Status Instance::begin_again() { return make_context(); }

std::vector<int> Instance::uvm_descriptors() const {
  return copy_ == nullptr ? std::vector<int>{} : copy_->descriptors_of("nvidia-uvm");
}

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

Status Instance::bring_up(const InstanceSettings& settings) {
  settings_ = settings;
  Status done = load();
  if (done) done = start();
  if (!done) (void)throw_away();
  return done;
}

instance::Thrown Instance::throw_away() {
  instance::Thrown thrown{true, true};
  if (copy_ == nullptr) return thrown;
  life_.store(0, std::memory_order_release);
  thrown = copy_->throw_away();
  if (!thrown.is_gone) return thrown;
  copy_.reset();
  primary_ = nullptr;
  scratch_ = 0;
  has_window_ = false;
  return thrown;
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
