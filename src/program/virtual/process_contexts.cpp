// SPDX-License-Identifier: Apache-2.0
/// The primary context, which is the anchor's for the program.
#include <algorithm>
#include <utility>
#include <vector>

#include "program/virtual/process.h"

namespace firebreak::virtual_driver {

void VirtualProcess::know_primary(CUcontext seen) {
  if (primary_seen_.load() == number_of(seen)) return;
  Object& primary = objects_.add_seen(Family::Context, number_of(seen));
  const std::lock_guard lock(instances_mutex_);
  primary_seen_.store(number_of(seen));
  for (const Instance* const instance : there_) {
    const std::uintptr_t own = instance->slot() == anchor ? number_of(seen) : number_of(instance->primary());
    objects_.set_own(primary, instance->slot(), own);
  }
}

CUresult VirtualProcess::retain_primary(CUcontext* context) {
  const std::lock_guard starting(starting_);
  const bool is_first = page_ != nullptr && primary_seen_.load() == 0 && !is_plain();
  const auto free_before = is_first ? free_on_gpu() : std::nullopt;
  const auto retain = [&] { return own_driver_.cuDevicePrimaryCtxRetain(context, 0); };
  CUresult result = primary_retains_ == 0 ? own_descriptors_.during(retain) : retain();
  // The anchor answers with the error of its domain once that has fallen, and does no work anyway.
  if (result != CUDA_SUCCESS && primary_seen_.load() != 0 && !is_plain()) {
    *context = reinterpret_cast<CUcontext>(primary_seen_.load());
    result = CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) ++primary_retains_;
  if (result == CUDA_SUCCESS) know_primary(*context);
  if (result == CUDA_SUCCESS && is_first) note_cost(page_->own_driver_mib, free_before);
  return result;
}

CUresult VirtualProcess::reset_primary() {
  if (is_plain()) return own_driver_.cuDevicePrimaryCtxReset_v2(0);
  stand_aside("it resets its primary context");
  const std::lock_guard starting(starting_);
  const CUresult result = own_driver_.cuDevicePrimaryCtxReset_v2(0);
  if (result != CUDA_SUCCESS) return result;
  return call([this](const Turn& turn) {
    memory_.free_all_of(primary_seen_.load(), turn.instance);
    const CUresult reset = turn.instance.reset();
    return reset == CUDA_SUCCESS ? begin_primary_again(turn.instance) : reset;
  });
}

/// The program is aside, so nobody moves meanwhile.
CUresult VirtualProcess::begin_primary_again(const Instance& working) {
  const auto its = std::ranges::find(instances_, &working, &std::unique_ptr<Instance>::get);
  Status begun;
  settings_.undisturbed([&] { begun = (*its)->begin_again(); });
  for (ThreadThere& each : current().there) each.context = ThreadThere::unknown;
  if (!begun) return CUDA_ERROR_SYSTEM_NOT_READY;
  Object* const known = objects_.find(Family::Context, primary_seen_.exchange(0));
  if (known != nullptr) objects_.set_own(*known, working.slot(), number_of(working.primary()));
  return CUDA_SUCCESS;
}

CUresult VirtualProcess::release_primary() {
  const std::lock_guard starting(starting_);
  const CUresult result = own_driver_.cuDevicePrimaryCtxRelease_v2(0);
  if (result == CUDA_SUCCESS) --primary_retains_;
  if (result != CUDA_SUCCESS || is_plain() || primary_seen_.load() == 0 || primary_retains_ > 0)
    return result;
  unsigned int flags = 0;
  int is_there = 1;
  const CUresult asked = own_driver_.cuDevicePrimaryCtxGetState(0, &flags, &is_there);
  if (asked != CUDA_SUCCESS || is_there != 0) return result;
  return call([this](const Turn& turn) {
    end_primary(turn);
    return CUDA_SUCCESS;
  });
}

namespace {

/// Destroys, in an instance whose primary context is current, what the program has there of these.
void destroy_all(const Instance& instance, const std::vector<Object*>& objects) {
  const cuda::Backend& driver = instance.driver();
  for (const Object* const each : objects) {
    const std::uintptr_t own = each->in[instance.slot()].load();
    if (own == 0) continue;
    if (each->family == Family::Stream) driver.cuStreamDestroy_v2(reinterpret_cast<CUstream>(own));
    if (each->family == Family::Event) driver.cuEventDestroy_v2(reinterpret_cast<CUevent>(own));
    if (each->family == Family::Module) driver.cuModuleUnload(reinterpret_cast<CUmodule>(own));
    if (each->family == Family::GraphExec) driver.cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(own));
  }
}

}  // namespace

/// The instance keeps its context, and everything that the program has left in it goes.
void VirtualProcess::end_primary(const Turn& turn) {
  const std::uintptr_t seen = primary_seen_.exchange(0);
  std::vector<Object*> left;
  {
    const ContextScope scope(turn.instance);
    (void)turn.driver.cuCtxSynchronize();
    for (const Family family : {Family::GraphExec, Family::Stream, Family::Event, Family::Module}) {
      objects_.for_each(family, [&](Object& each) {
        if (each.origin.context == seen) left.push_back(&each);
      });
    }
    if (Object* const known = objects_.find(Family::Context, seen); known != nullptr) objects_.remove(*known);
    destroy_all(turn.instance, left);
    memory_.free_all_of(seen, turn.instance);
  }
  const Instance* const other = receiver();
  if (other == nullptr) return;
  const ContextScope scope(*other);
  destroy_all(*other, left);
}

bool VirtualProcess::has_context(CUcontext context) {
  if (objects_.find(Family::Context, number_of(context)) != nullptr) return true;
  const std::lock_guard starting(starting_);
  if (primary_seen_.load() != 0 || own_driver_.cuCtxSetCurrent(context) != CUDA_SUCCESS) return false;
  current().there[anchor].context = number_of(context);
  know_primary(context);
  return true;
}

}  // namespace firebreak::virtual_driver
