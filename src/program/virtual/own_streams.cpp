// SPDX-License-Identifier: Apache-2.0
/// Streams and events end, and what was queued is known to have ended. And what programs are given who look
/// for the driver's functions by their names.
#include <array>

#include "program/virtual/calls.h"
#include "program/virtual/newer_functions.h"

namespace firebreak::virtual_driver::own {
namespace {

/// Waits for, or asks about, everything that was queued before in what `work` counts.
template <class Wait>
CUresult wait_for(VirtualProcess& all, Work& work, const Wait& wait_on) {
  const std::uint32_t begun = all.word().begun();
  const std::uint64_t queued = work.queued.load();
  const CUresult result = wait_on();
  if (result != CUDA_SUCCESS) return result;
  if (all.is_one_stream(work)) work.end(queued);
  all.tell_ended(begun);
  all.saw_an_end();
  return result;
}

template <class Handle, class Destroy>
CUresult destroy(const OwnCall& call, Handle handle, Destroy destroy_one) {
  Object* const object = call.all.objects().find(FamilyOf<Handle>::value, number_of(handle));
  return call.all.call([&](const Turn& turn) {
    const CUresult destroyed = destroy_one(turn.driver, turn.objects.translate(handle, turn.slot));
    if (destroyed == CUDA_SUCCESS) end_object<Handle>(turn, object, destroy_one);
    return destroyed;
  });
}

}  // namespace

CUresult cuStreamDestroy(const OwnCall& call, CUstream stream) {
  return own::cuStreamDestroy_v2(call, stream);
}

CUresult cuEventDestroy(const OwnCall& call, CUevent event) { return own::cuEventDestroy_v2(call, event); }

CUresult cuStreamDestroy_v2(const OwnCall& call, CUstream stream) {
  // What is queued in it may go on.
  if (call.all.work_of(stream).is_under_way()) call.all.give_unknown(call.all.work_of(nullptr, true));
  return destroy(call, stream,
                 [](const cuda::Backend& driver, CUstream own) { return driver.cuStreamDestroy_v2(own); });
}

CUresult cuEventDestroy_v2(const OwnCall& call, CUevent event) {
  return destroy(call, event,
                 [](const cuda::Backend& driver, CUevent own) { return driver.cuEventDestroy_v2(own); });
}

/// It is set in the next instance, too. A default stream comes with its instance and has no steps.
CUresult cuStreamSetAttribute(const OwnCall& call, CUstream stream, CUstreamAttrID attribute,
                              const CUstreamAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (is_special(number_of(stream)) && !call.all.is_plain())
    call.all.stand_aside("it sets an attribute of a default stream");
  return call.all.call([&](const Turn& turn) {
    const auto set = call.which(turn.driver.cuStreamSetAttribute, turn.driver.cuStreamSetAttribute_ptsz);
    const CUresult result = set(turn.objects.translate(stream, turn.slot), attribute, value);
    Object* const object = turn.objects.find(Family::Stream, number_of(stream));
    if (result != CUDA_SUCCESS || object == nullptr) return result;
    const auto again = [stream, attribute, kept = *value](Making& making) {
      return making.driver.cuStreamSetAttribute(making.in(stream), attribute, &kept);
    };
    Object::Step step{"attribute" + std::to_string(attribute), again, current_context(),
                      std::string(value->pad, sizeof value->pad)};
    if (turn.objects.add_step(*object, turn.slot, std::move(step))) call.all.something_new();
    return result;
  });
}

CUresult cuStreamCopyAttributes(const OwnCall& call, CUstream destination, CUstream source) {
  constexpr std::array of_streams{CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                                  CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                  CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                                  CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN};
  const CUresult copied = call.all.call([&](const Turn& turn) {
    return turn.driver.cuStreamCopyAttributes(turn.objects.translate(destination, turn.slot),
                                              turn.objects.translate(source, turn.slot));
  });
  for (const CUstreamAttrID attribute : of_streams) {
    CUstreamAttrValue value{};
    const CUresult known = call.all.call([&](const Turn& turn) {
      return turn.driver.cuStreamGetAttribute(turn.objects.translate(source, turn.slot), attribute, &value);
    });
    if (copied == CUDA_SUCCESS && known == CUDA_SUCCESS)
      (void)own::cuStreamSetAttribute(call, destination, attribute, &value);
  }
  return copied;
}

CUresult cuStreamSynchronize(const OwnCall& call, CUstream stream) {
  return call.all.call([&](const Turn& turn) {
    const auto wait_on = call.which(turn.driver.cuStreamSynchronize, turn.driver.cuStreamSynchronize_ptsz);
    const auto wait_one = [&] { return wait_on(turn.objects.translate(stream, turn.slot)); };
    return wait_for(call.all, call.all.work_of(stream, call.per_thread), wait_one);
  });
}

CUresult cuStreamQuery(const OwnCall& call, CUstream stream) {
  return call.all.call([&](const Turn& turn) {
    const auto ask = call.which(turn.driver.cuStreamQuery, turn.driver.cuStreamQuery_ptsz);
    const auto ask_one = [&] { return ask(turn.objects.translate(stream, turn.slot)); };
    return wait_for(call.all, call.all.work_of(stream, call.per_thread), ask_one);
  });
}

/// It reads the GPU's memory and returns once that is done: whatever comes of it, it may be done again.
CUresult cuMemcpyDtoH_v2(const OwnCall& call, void* host, CUdeviceptr address, std::size_t size_bytes) {
  return call.all.call([&](const Turn& turn) {
    const auto copy = call.which(turn.driver.cuMemcpyDtoH_v2, turn.driver.cuMemcpyDtoH_v2_ptds);
    const auto copy_all = [&] { return copy(host, turn.translate(address), size_bytes); };
    // Of the streams that threads have for themselves it has waited for one.
    return wait_for(call.all, call.all.work_of(nullptr, call.per_thread), copy_all);
  });
}

namespace {

bool is_pinned_for(const OwnCall& call, const void* host, std::size_t size_bytes) {
  return call.all.memory().is_pinned(reinterpret_cast<std::uintptr_t>(host), size_bytes);
}

}  // namespace

/// What it writes to variables is known then, also where the domain dies.
CUresult cuMemcpyHtoD_v2(const OwnCall& call, CUdeviceptr address, const void* host, std::size_t size_bytes) {
  return call.all.call([&](const Turn& turn) {
    if (!call.all.may_copy(turn, address, host, size_bytes)) return CUDA_ERROR_NOT_SUPPORTED;
    const auto copy = call.which(turn.driver.cuMemcpyHtoD_v2, turn.driver.cuMemcpyHtoD_v2_ptds);
    const bool may_change_first = is_pinned_for(call, host, size_bytes) && call.all.is_any_work_under_way();
    Work& work = call.all.work_of(nullptr, call.per_thread);
    const Giving giving(call.all, work);
    const CUresult result = counted_first(work, [&] {
      call.all.give(work, [&](GivenWork& given, const Work& its) {
        note_upload(turn, given, its, address, host, size_bytes, may_change_first);
      });
      return copy(turn.translate(address), host, size_bytes);
    });
    if (result == CUDA_SUCCESS) {
      call.all.maybe_mark(turn, work, nullptr);
      call.all.saw_an_end();
    }
    call.all.taken().wrote(address, host, size_bytes, result == CUDA_SUCCESS);
    return result;
  });
}

namespace {

/// What the driver has for that name at an older version.
void* at_version(const OwnCall& call, const char* symbol, int cuda_version, std::uint64_t flags) {
  void* function = nullptr;
  const CUresult result = call.all.own_driver().cuGetProcAddress(symbol, &function, cuda_version, flags);
  return result == CUDA_SUCCESS ? function : nullptr;
}

/// Puts ours in the place of what the driver has answered. False: ours is not to be had, and the driver's own
/// would not reach the instance that works.
bool replace(const OwnCall& call, const char* symbol, void** function, int cuda_version,
             std::uint64_t flags) {
  if (symbol == nullptr || function == nullptr || *function == nullptr) return true;
  const auto ask = [&](int version) { return at_version(call, symbol, version, flags); };
  if (is_newer_than_known(symbol, cuda_version, *function, ask)) {
    if (call.all.goes_without_spare(symbol)) return true;
    *function = nullptr;
    return false;
  }
  if (is_new_name(symbol, cuda_version, ask)) {
    *function = nullptr;  // as from a driver of the version that is known here
    return false;
  }
  void* const ours = stub_of_entry_point(symbol, cuda_version, flags);
  if (ours == nullptr && trace() == Trace::Calls)
    std::fprintf(stderr, "firebreak: %s is not known here\n", symbol);
  if (ours != nullptr) *function = ours;
  return true;
}

}  // namespace

CUresult cuGetProcAddress(const OwnCall& call, const char* symbol, void** function, int cuda_version,
                          std::uint64_t flags) {
  const CUresult result = call.all.own_driver().cuGetProcAddress(symbol, function, cuda_version, flags);
  if (result != CUDA_SUCCESS || replace(call, symbol, function, cuda_version, flags)) return result;
  return CUDA_ERROR_NOT_FOUND;
}

/// Who asks in this way takes a missing name for an answer.
CUresult cuGetProcAddress_v2(const OwnCall& call, const char* symbol, void** function, int cuda_version,
                             std::uint64_t flags, CUdriverProcAddressQueryResult* found) {
  const CUresult result =
      call.all.own_driver().cuGetProcAddress_v2(symbol, function, cuda_version, flags, found);
  if (result != CUDA_SUCCESS || replace(call, symbol, function, cuda_version, flags)) return result;
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace firebreak::virtual_driver::own
