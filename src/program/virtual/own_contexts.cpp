// SPDX-License-Identifier: Apache-2.0
/// The process, and its contexts: the program's handle of its primary context is the anchor's, because the
/// CUDA runtime looks into it by ways of its own.
#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

/// What the runtime finds current in the anchor is what the program made current.
void show_anchor(const OwnCall& call) {
  if (call.all.is_plain()) return;
  const Current& mine = current();
  const CUcontext seen = mine.stack.back();
  Object* const context = call.all.objects().find(Family::Context, number_of(seen));
  const std::uintptr_t there = context == nullptr ? 0 : context->in[anchor].load();
  call.all.own_driver().cuCtxSetCurrent(reinterpret_cast<CUcontext>(there));
  current().there[anchor].context = there;
}

/// The one of the program's contexts that the anchor has. Null: it has not asked for it yet.
Object* primary_of(const OwnCall& call) {
  Object* found = nullptr;
  call.all.objects().for_each(Family::Context, [&](Object& each) {
    if (each.in[anchor].load() != 0) found = &each;
  });
  return found;
}

/// Every instance has the primary context from its beginning: here, and in what comes. What the program sets
/// before it asks for the context holds for the program's own driver alone.
CUresult set_primary_flags(const OwnCall& call, unsigned int flags) {
  Object* const object = primary_of(call);
  if (object == nullptr || call.all.is_plain()) return CUDA_SUCCESS;
  const auto set = [flags](Making& making) { return making.driver.cuDevicePrimaryCtxSetFlags_v2(0, flags); };
  const CUresult result = call.all.call([&](const Turn& turn) {
    Making making{turn.driver, turn.slot, turn.objects};
    const CUresult done = set(making);
    if (done == CUDA_SUCCESS)
      (void)turn.objects.add_step(*object, turn.slot, {"flags", set, 0, std::to_string(flags)});
    return done;
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

bool is_known(const OwnCall& call, CUcontext context) {
  return context == nullptr || call.all.has_context(context);
}

/// Makes a context, which is current then.
template <class Create>
CUresult create(const OwnCall& call, CUcontext* context, Create make) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (current().stack.is_full()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = call.all.call([&](const Turn& turn) {
    Making making{turn.driver, turn.slot, turn.objects};
    Object::Step step{{}, std::move(make)};
    const auto lock = call.all.lock_contexts();
    const CUresult made = step.again(making);
    if (made != CUDA_SUCCESS) return made;
    Object& object = turn.objects.add(Family::Context, making.made, turn.slot, {step});
    *context = reinterpret_cast<CUcontext>(object.seen);
    return made;
  });
  if (result != CUDA_SUCCESS) return result;
  current().stack.push_back(*context);
  show_anchor(call);
  call.all.something_new();
  return call.all.call([](const Turn&) { return CUDA_SUCCESS; });
}

/// One that has ended is current no longer.
void forget_last(const OwnCall& call, CUcontext ended) {
  for (ThreadThere& each : current().there) each.context = ThreadThere::unknown;
  ContextStack& stack = current().stack;
  if (!stack.empty() && stack.back() == ended) stack.pop_back();
  current().device_of = nullptr;
  show_anchor(call);
}

/// The driver has pushed it. Its stack has one context at most, since the program's is ours: what were below
/// would be current once the program has none.
CUresult created(Making& making, CUresult result, CUcontext context) {
  making.made = number_of(context);
  CUcontext pushed = nullptr;
  if (result == CUDA_SUCCESS) (void)making.driver.cuCtxPopCurrent_v2(&pushed);
  return result;
}

}  // namespace

CUresult cuInit(const OwnCall& call, unsigned int flags) { return call.all.initialise(flags); }

CUresult cuDevicePrimaryCtxRetain(const OwnCall& call, CUcontext* context, CUdevice device) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device == 0) return call.all.retain_primary(context);
  call.all.stand_aside("it uses several devices");
  return call.all.own_driver().cuDevicePrimaryCtxRetain(context, device);
}

/// The functions of CUDA 2 and 3 do what those do that took their place.
CUresult cuCtxCreate(const OwnCall& call, CUcontext* context, unsigned int flags, CUdevice device) {
  return own::cuCtxCreate_v2(call, context, flags, device);
}

CUresult cuCtxDestroy(const OwnCall& call, CUcontext context) { return own::cuCtxDestroy_v2(call, context); }

CUresult cuCtxPushCurrent(const OwnCall& call, CUcontext context) {
  return own::cuCtxPushCurrent_v2(call, context);
}

CUresult cuCtxPopCurrent(const OwnCall& call, CUcontext* context) {
  return own::cuCtxPopCurrent_v2(call, context);
}

CUresult cuCtxCreate_v2(const OwnCall& call, CUcontext* context, unsigned int flags, CUdevice device) {
  return create(call, context, [=](Making& making) {
    CUcontext made = nullptr;
    const CUresult result = making.driver.cuCtxCreate_v2(&made, flags, device);
    return created(making, result, made);
  });
}

CUresult cuCtxCreate_v3(const OwnCall& call, CUcontext* context, CUexecAffinityParam* params, int param_count,
                        unsigned int flags, CUdevice device) {
  std::vector<CUexecAffinityParam> given(params, params + (params == nullptr ? 0 : param_count));
  return create(call, context, [=](Making& making) mutable {
    CUcontext made = nullptr;
    const CUresult result = making.driver.cuCtxCreate_v3(&made, given.empty() ? nullptr : given.data(),
                                                         static_cast<int>(given.size()), flags, device);
    return created(making, result, made);
  });
}

CUresult cuCtxCreate_v4(const OwnCall& call, CUcontext* context, CUctxCreateParams* params,
                        unsigned int flags, CUdevice device) {
  const bool has_more = params != nullptr && params->cigParams != nullptr;
  if (has_more) call.all.stand_aside("it shares its context with a graphics API");
  std::vector<CUexecAffinityParam> given;
  if (params != nullptr && params->execAffinityParams != nullptr) {
    given.assign(params->execAffinityParams, params->execAffinityParams + params->numExecAffinityParams);
  }
  CUctxCigParam* const shared = has_more ? params->cigParams : nullptr;
  return create(call, context, [=](Making& making) mutable {
    CUctxCreateParams again{given.empty() ? nullptr : given.data(), static_cast<int>(given.size()), shared};
    CUcontext made = nullptr;
    const CUresult result = making.driver.cuCtxCreate_v4(&made, &again, flags, device);
    return created(making, result, made);
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(const OwnCall& call, CUdevice device) {
  return device == 0 ? call.all.release_primary()
                     : call.all.own_driver().cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxRelease(const OwnCall& call, CUdevice device) {
  return own::cuDevicePrimaryCtxRelease_v2(call, device);
}

CUresult cuDevicePrimaryCtxReset_v2(const OwnCall& call, CUdevice device) {
  if (device == 0) return call.all.reset_primary();
  call.all.stand_aside("it uses several devices");
  return call.all.own_driver().cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxReset(const OwnCall& call, CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(call, device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(const OwnCall& call, CUdevice device, unsigned int flags) {
  const CUresult result = call.all.own_driver().cuDevicePrimaryCtxSetFlags_v2(device, flags);
  return result == CUDA_SUCCESS && device == 0 ? set_primary_flags(call, flags) : result;
}

CUresult cuDevicePrimaryCtxSetFlags(const OwnCall& call, CUdevice device, unsigned int flags) {
  return own::cuDevicePrimaryCtxSetFlags_v2(call, device, flags);
}

namespace {

/// Runs `end_one` in the instance that works. Where the context has ended of that, it ends in the spare, too.
template <class EndOne>
CUresult end_context(const OwnCall& call, CUcontext context, const EndOne& end_one) {
  if (const CUresult ready = initialised(call); ready != CUDA_SUCCESS) return ready;
  Object* const object = call.all.objects().find(Family::Context, number_of(context));
  if (object == nullptr || object->steps.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!call.all.is_plain() && object == primary_of(call)) return CUDA_ERROR_INVALID_CONTEXT;
  bool is_gone = false;
  const CUresult result = call.all.call([&](const Turn& turn) {
    const auto lock = call.all.lock_contexts();
    const CUresult ended = end_one(turn.driver, turn.objects.translate(context, turn.slot), &is_gone);
    if (ended != CUDA_SUCCESS || !is_gone) return ended;
    call.all.memory().free_all_of(number_of(context), turn.instance);
    end_object<CUcontext>(
        turn, object, [](const cuda::Backend& driver, CUcontext there) { driver.cuCtxDestroy_v2(there); });
    return ended;
  });
  if (result == CUDA_SUCCESS && is_gone) forget_last(call, context);
  return result;
}

}  // namespace

CUresult initialised(const OwnCall& call) {
  if (current().stack.back() != nullptr) return CUDA_SUCCESS;
  CUcontext none = nullptr;
  const CUresult asked = call.all.own_driver().cuCtxGetCurrent(&none);
  return asked == CUDA_ERROR_NOT_INITIALIZED ? asked : CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(const OwnCall& call, CUcontext context) {
  return end_context(call, context, [](const cuda::Backend& driver, CUcontext own, bool* is_gone) {
    *is_gone = true;
    return driver.cuCtxDestroy_v2(own);
  });
}

/// The driver counts the users of a context, which is current. Whoever detaches last ends it.
CUresult cuCtxDetach(const OwnCall& call, CUcontext context) {
  return end_context(call, context, [](const cuda::Backend& driver, CUcontext own, bool* is_gone) {
    const CUresult result = driver.cuCtxDetach(own);
    CUcontext now = nullptr;
    *is_gone = result == CUDA_SUCCESS && driver.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now != own;
    return result;
  });
}

/// No other instance has it.
CUresult cuCtxFromGreenCtx(const OwnCall& call, CUcontext* context, CUgreenCtx green) {
  call.all.stand_aside("it has a green context");
  return call.all.call([&](const Turn& turn) {
    const CUresult result = turn.driver.cuCtxFromGreenCtx(context, green);
    if (result != CUDA_SUCCESS) return result;
    turn.objects.set_own(turn.objects.add_seen(Family::Context, number_of(*context)), turn.slot,
                         number_of(*context));
    return result;
  });
}

CUresult cuGreenCtxDestroy(const OwnCall& call, CUgreenCtx green) {
  CUcontext context = nullptr;
  const CUresult result = call.all.call([&](const Turn& turn) {
    (void)turn.driver.cuCtxFromGreenCtx(&context, green);
    return turn.driver.cuGreenCtxDestroy(green);
  });
  if (result != CUDA_SUCCESS || context == nullptr) return result;
  Object* const object = call.all.objects().find(Family::Context, number_of(context));
  if (object != nullptr) call.all.objects().remove(*object);
  forget_last(call, context);
  return result;
}

CUresult cuCtxSetCurrent(const OwnCall& call, CUcontext context) {
  if (const CUresult ready = initialised(call); ready != CUDA_SUCCESS) return ready;
  if (!is_known(call, context)) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStack& stack = current().stack;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  show_anchor(call);
  return call.all.call([](const Turn&) { return CUDA_SUCCESS; });
}

CUresult cuCtxGetCurrent(const OwnCall& call, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = current().stack.back();
  return initialised(call);
}

/// Programs ask for it dozens of times between two launches.
CUresult cuCtxGetDevice(const OwnCall& call, CUdevice* device) {
  Current& mine = current();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!mine.stack.empty() && mine.stack.back() == mine.device_of) {
    *device = mine.device;
    return CUDA_SUCCESS;
  }
  const CUresult result = call.all.call([&](const Turn& turn) { return turn.driver.cuCtxGetDevice(device); });
  if (result == CUDA_SUCCESS && !mine.stack.empty()) {
    mine.device_of = mine.stack.back();
    mine.device = *device;
  }
  return result;
}

CUresult cuCtxGetDevice_v2(const OwnCall& call, CUdevice* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(call, device);
  return call.all.call([&](const Turn& turn) {
    return turn.driver.cuCtxGetDevice_v2(device, turn.objects.translate(context, turn.slot));
  });
}

CUresult cuCtxPushCurrent_v2(const OwnCall& call, CUcontext context) {
  if (const CUresult ready = initialised(call); ready != CUDA_SUCCESS) return ready;
  if (context == nullptr || !is_known(call, context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (current().stack.is_full()) return CUDA_ERROR_OUT_OF_MEMORY;
  current().stack.push_back(context);
  show_anchor(call);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(const OwnCall& call, CUcontext* context) {
  if (const CUresult ready = initialised(call); ready != CUDA_SUCCESS) return ready;
  ContextStack& stack = current().stack;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  show_anchor(call);
  return CUDA_SUCCESS;
}

namespace {

/// Changes the current context, here and in what comes.
template <class Set>
CUresult set_current(const OwnCall& call, std::string key, Set set) {
  return call.all.call([&](const Turn& turn) {
    const CUresult result = set(turn.driver);
    const ContextStack& stack = current().stack;
    if (result != CUDA_SUCCESS || stack.empty()) return result;
    const CUcontext seen = stack.back();
    Object* const context = turn.objects.find(Family::Context, number_of(seen));
    if (context == nullptr) return result;
    turn.objects.add_step(
        *context, turn.slot,
        {std::move(key), [=](Making& making) { return set(making.driver); }, number_of(seen)});
    call.all.something_new();
    return result;
  });
}

}  // namespace

CUresult cuCtxSetLimit(const OwnCall& call, CUlimit limit, std::size_t value) {
  return set_current(call, "limit" + std::to_string(limit),
                     [=](const cuda::Backend& driver) { return driver.cuCtxSetLimit(limit, value); });
}

CUresult cuCtxSetFlags(const OwnCall& call, unsigned int flags) {
  return set_current(call, "flags", [=](const cuda::Backend& driver) { return driver.cuCtxSetFlags(flags); });
}

CUresult cuCtxSetCacheConfig(const OwnCall& call, CUfunc_cache config) {
  return set_current(call, "cache",
                     [=](const cuda::Backend& driver) { return driver.cuCtxSetCacheConfig(config); });
}

CUresult cuCtxSynchronize(const OwnCall& call) {
  return call.all.call([&](const Turn& turn) {
    const auto wait_on = [&] { return turn.driver.cuCtxSynchronize(); };
    return call.all.has_one_context() ? call.all.wait_for_all(wait_on) : wait_on();
  });
}

CUresult cuCtxSynchronize_v2(const OwnCall& call, CUcontext context) {
  return call.all.call([&](const Turn& turn) {
    const auto wait_on = [&] {
      return turn.driver.cuCtxSynchronize_v2(turn.objects.translate(context, turn.slot));
    };
    return call.all.has_one_context() ? call.all.wait_for_all(wait_on) : wait_on();
  });
}

}  // namespace firebreak::virtual_driver::own
