// SPDX-License-Identifier: Apache-2.0
/// Memory comes and goes, and what programs ask about it.
#include "ground/os/memory.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {
namespace {

CUresult wait_for_everything(const OwnCall& call, const Turn& turn) {
  const auto wait_on = [&] { return turn.driver.cuCtxSynchronize(); };
  return call.all.has_one_context() ? call.all.wait_for_all(wait_on) : wait_on();
}

/// Everything that may use memory which the program gives back has ended, as the driver's own functions wait.
/// Empty: a stream is captured, and waiting would end that. Another thread may begin a capture while the GPU
/// works, since the GPU may be waiting for that thread.
std::optional<CUresult> wait_for_users(const OwnCall& call, const Turn& turn) {
  constexpr std::chrono::microseconds longest_pause(200);
  Graphs& graphs = call.all.graphs();
  for (std::chrono::microseconds pause(5);; pause = std::min(2 * pause, longest_pause)) {
    std::optional<CUresult> result;
    const bool is_free = graphs.between_captures([&] {
      if (graphs.has_ever_captured() && !call.all.are_streams_idle(turn.instance)) return;
      result = wait_for_everything(call, turn);
    });
    if (result || !is_free) return result;
    std::this_thread::sleep_for(pause);
  }
}

/// In the middle of a capture the driver waits as it can.
CUresult wait_for_users_if_free(const OwnCall& call, const Turn& turn) {
  return wait_for_users(call, turn).value_or(CUDA_SUCCESS);
}

/// Takes up what was freed in the order of streams. Asking for an event may end somebody's capture.
void take_up(const OwnCall& call, const Turn& turn) {
  (void)call.all.graphs().between_captures(
      [&] { call.all.later_frees().take_up(call.all.memory(), turn.instance); });
}

CUresult pin(const OwnCall& call, void* host, std::size_t size_bytes, unsigned int flags) {
  const CUresult result = call.all.call([&](const Turn& turn) {
    const CUresult registered = turn.driver.cuMemHostRegister_v2(host, size_bytes, flags);
    if (registered == CUDA_SUCCESS) call.all.memory().add_host(host, size_bytes, flags, turn.slot);
    return registered;
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

CUresult unpin(const OwnCall& call, void* host) {
  return call.all.call([&](const Turn& turn) {
    if (const CUresult waited = wait_for_users_if_free(call, turn); waited != CUDA_SUCCESS) return waited;
    const CUresult result = turn.driver.cuMemHostUnregister(host);
    if (result == CUDA_SUCCESS) call.all.memory().remove_host(host);
    if (result == CUDA_SUCCESS) call.all.gave_back();
    return result;
  });
}

std::size_t whole_pages(std::size_t size_bytes) {
  const std::size_t page = os::page_size();
  return (size_bytes + page - 1) / page * page;
}

}  // namespace

namespace {

bool is_captured_here(const OwnCall& call, const Turn& turn, CUstream stream) {
  if (!call.all.graphs().are_captures_under_way()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto ask = call.which(turn.driver.cuStreamIsCapturing, turn.driver.cuStreamIsCapturing_ptsz);
  const CUresult asked = ask(turn.objects.translate(stream, turn.slot), &status);
  return asked == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/// What was freed during a capture comes back after it. There is no other memory, so the caller would have an
/// error now.
void await_captures(const OwnCall& call, const Turn& turn) {
  constexpr std::chrono::milliseconds look_again(1);
  constexpr int looks_max = 5'000;
  for (int i = 0; i < looks_max && call.all.later_frees().wants_wait(); ++i) {
    const std::optional<CUresult> waited = wait_for_users(call, turn);
    if (waited == CUDA_SUCCESS) call.all.later_frees().take_up(call.all.memory(), turn.instance, true);
    if (waited) return;
    std::this_thread::sleep_for(look_again);
  }
}

/// Gives up waiting for what was freed in the order of streams only where there is no other memory.
CUresult allocate(const OwnCall& call, const Turn& turn, std::size_t size_bytes, CUdeviceptr* address) {
  if (current().stack.empty() || call.all.is_current_ended()) return CUDA_ERROR_INVALID_CONTEXT;
  const auto take = [&] {
    return call.all.memory().allocate(turn.instance, size_bytes, current_context(), address);
  };
  take_up_put_off(call, turn);
  take_up(call, turn);
  const CUresult taken = take();
  if (taken != CUDA_ERROR_OUT_OF_MEMORY) return taken;
  await_captures(call, turn);
  if (wait_for_users_if_free(call, turn) != CUDA_SUCCESS) return taken;
  take_up(call, turn);
  return take();
}

}  // namespace

void take_up_put_off(const OwnCall& call, const Turn& turn) {
  if (!call.all.later_frees().wants_wait()) return;
  (void)call.all.graphs().between_captures([&] {
    if (!call.all.are_streams_idle(turn.instance) || wait_for_everything(call, turn) != CUDA_SUCCESS) return;
    call.all.later_frees().take_up(call.all.memory(), turn.instance, true);
  });
}

CUresult cuMemAlloc_v2(const OwnCall& call, CUdeviceptr* address, std::size_t size_bytes) {
  const CUresult result = call.all.call([&](const Turn& turn) {
    if (turn.slot == anchor) return turn.driver.cuMemAlloc_v2(address, size_bytes);
    return allocate(call, turn, size_bytes, address);
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

namespace {

/// What is no stream of ours may be the driver's own.
CUresult check_stream(const Turn& turn, CUstream stream) {
  if (is_special(number_of(stream)) || turn.objects.find(Family::Stream, number_of(stream)) != nullptr)
    return CUDA_SUCCESS;
  unsigned int flags = 0;
  return turn.driver.cuStreamGetFlags(stream, &flags);
}

}  // namespace

/// It is there at once, which is sooner than in the order of the stream.
CUresult cuMemAllocAsync(const OwnCall& call, CUdeviceptr* address, std::size_t size_bytes, CUstream stream) {
  const CUresult result = call.all.call([&](const Turn& turn) {
    const bool is_captured = is_captured_here(call, turn, stream);
    if (is_captured) call.all.stand_aside("it has a graph that allocates memory");
    if (turn.slot == anchor || is_captured) {
      const auto plain = call.which(turn.driver.cuMemAllocAsync, turn.driver.cuMemAllocAsync_ptsz);
      return plain(address, size_bytes, turn.objects.translate(stream, turn.slot));
    }
    if (const CUresult checked = check_stream(turn, stream); checked != CUDA_SUCCESS) return checked;
    return allocate(call, turn, size_bytes, address);
  });
  if (result == CUDA_SUCCESS) call.all.something_new();
  return result;
}

CUresult cuMemFreeAsync(const OwnCall& call, CUdeviceptr address, CUstream stream) {
  return call.all.call([&](const Turn& turn) {
    const CUstream own = turn.objects.translate(stream, turn.slot);
    take_up(call, turn);  // What was freed before is gone, and that may be this.
    const auto range = call.all.memory().find(address);
    if (!range) {
      const auto plain = call.which(turn.driver.cuMemFreeAsync, turn.driver.cuMemFreeAsync_ptsz);
      return plain(address, own);
    }
    // What goes in a graph has come in one.
    if (range->begin != address || is_captured_here(call, turn, stream)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult marked = call.all.later_frees().add(turn.instance, own, call.per_thread, address);
    if (marked == CUDA_SUCCESS) call.all.give_unknown(call.all.work_of(stream, call.per_thread));
    return marked;
  });
}

CUresult cuMemAllocPitch_v2(const OwnCall& call, CUdeviceptr* address, std::size_t* pitch_bytes,
                            std::size_t width_bytes, std::size_t height, unsigned int element_bytes) {
  constexpr std::size_t alignment_bytes = 512;  // what an H100 aligns rows to
  const bool is_element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (pitch_bytes == nullptr || width_bytes == 0 || height == 0 || !is_element)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t pitch = (width_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  if (pitch < width_bytes || height > window_bytes / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
  if (call.all.is_plain()) {
    return call.all.call([&](const Turn& turn) {
      return turn.driver.cuMemAllocPitch_v2(address, pitch_bytes, width_bytes, height, element_bytes);
    });
  }
  const CUresult result = own::cuMemAlloc_v2(call, address, pitch * height);
  if (result == CUDA_SUCCESS) *pitch_bytes = pitch;
  return result;
}

CUresult cuMemFree_v2(const OwnCall& call, CUdeviceptr address) {
  if (address == 0) return initialised(call);  // it needs no context, but a cuInit before
  return call.all.call([&](const Turn& turn) {
    const bool is_ours = call.all.memory().find(address).has_value();
    if (!is_ours) return turn.driver.cuMemFree_v2(address);
    if (call.all.later_frees().holds(address)) return CUDA_ERROR_INVALID_VALUE;
    const std::optional<CUresult> waited = wait_for_users(call, turn);
    if (!waited) {
      const bool is_first = call.all.later_frees().add_until_all_waited(turn.instance, address);
      return is_first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (*waited != CUDA_SUCCESS) return *waited;
    return call.all.memory().free(address, turn.instance) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemGetAddressRange_v2(const OwnCall& call, CUdeviceptr* begin, std::size_t* size_bytes,
                                 CUdeviceptr address) {
  return call.all.call([&](const Turn& turn) {
    const auto range = call.all.memory().find(address);
    if (!range) {
      const CUdeviceptr there = turn.translate(address);
      const CUresult result = turn.driver.cuMemGetAddressRange_v2(begin, size_bytes, there);
      if (result == CUDA_SUCCESS && begin != nullptr) *begin += address - there;
      return result;
    }
    if (begin != nullptr) *begin = range->begin;
    if (size_bytes != nullptr) *size_bytes = range->size_bytes;
    return CUDA_SUCCESS;
  });
}

namespace {

/// What is mapped the driver has such that it can be exported, and in the window, which is one reservation.
/// What it answers as null it does not know.
void correct_mapped(const Turn& turn, void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const bool is_range =
      attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
  if (!is_range && attribute != CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) return;
  const auto place = turn.all.mappings().find_place(address);
  if (attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES && (place || is_in_window(address))) {
    auto& types = *static_cast<std::uint32_t*>(data);  // the driver writes that much at least
    if (types != 0) types = place ? static_cast<std::uint32_t>(place->handle_types) : 0;
  }
  if (place && attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
    *static_cast<CUdeviceptr*>(data) = place->reserved_begin;
  if (attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE) return;
  auto& size_bytes = *static_cast<std::size_t*>(data);
  if (place && size_bytes != 0) size_bytes = place->reserved_bytes;
}

/// What the driver has answered, in the program's terms.
void correct(const Turn& turn, void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto range = turn.all.memory().find(address);
  correct_mapped(turn, data, attribute, address);
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
    *static_cast<CUdeviceptr*>(data) += address - turn.translate(address);
  if (range && attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
    *static_cast<CUdeviceptr*>(data) = range->begin;
  if (range && attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
    *static_cast<std::size_t*>(data) = range->size_bytes;
  if (range && attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID)
    *static_cast<unsigned long long*>(data) = range->id;
  // The driver has it of no context: it was mapped.
  if (range && attribute == CU_POINTER_ATTRIBUTE_CONTEXT) {
    *static_cast<CUcontext*>(data) = reinterpret_cast<CUcontext>(range->context);
  } else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) {
    auto& context = *static_cast<CUcontext*>(data);
    Object* const known = turn.objects.find_own(Family::Context, number_of(context), turn.slot);
    if (known != nullptr) context = reinterpret_cast<CUcontext>(known->seen);
  }
}

}  // namespace

CUresult cuPointerGetAttribute(const OwnCall& call, void* data, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  return call.all.call([&](const Turn& turn) {
    const CUresult result = turn.driver.cuPointerGetAttribute(data, attribute, turn.translate(address));
    if (result == CUDA_SUCCESS && data != nullptr) correct(turn, data, attribute, address);
    return result;
  });
}

/// Of an address that the driver does not know, each attribute is null and the answer is success.
CUresult cuPointerGetAttributes(const OwnCall& call, unsigned int count, CUpointer_attribute* attributes,
                                void** data, CUdeviceptr address) {
  return call.all.call([&](const Turn& turn) {
    const CUdeviceptr there = turn.translate(address);
    const CUresult result = turn.driver.cuPointerGetAttributes(count, attributes, data, there);
    if (result != CUDA_SUCCESS) return result;
    for (unsigned int i = 0; i < count; ++i) {
      const bool is_address = attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                              attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
      if (is_address && *static_cast<CUdeviceptr*>(data[i]) == 0) continue;
      correct(turn, data[i], attributes[i], address);
    }
    return result;
  });
}

CUresult cuMemHostAlloc(const OwnCall& call, void** host, std::size_t size_bytes, unsigned int flags) {
  if (call.all.is_plain() || host == nullptr || size_bytes == 0) {
    return call.all.call(
        [&](const Turn& turn) { return turn.driver.cuMemHostAlloc(host, size_bytes, flags); });
  }
  constexpr unsigned int known_flags =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t mapped_bytes = whole_pages(size_bytes);
  auto mapping = mapped_bytes < size_bytes ? Result<os::Mapping>(fail(ErrorCode::ResourceExhausted, ""))
                                           : os::Mapping::anonymous(mapped_bytes);
  if (!mapping) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result =
      pin(call, mapping->data(), mapped_bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result != CUDA_SUCCESS) return result;
  *host = mapping->data();
  call.all.keep_host({std::move(*mapping), flags});
  return result;
}

/// The driver has registered it, with flags of ours. It has all that can be mapped as mapped.
CUresult cuMemHostGetFlags(const OwnCall& call, unsigned int* flags, void* host) {
  return call.all.call([&](const Turn& turn) {
    const auto given = call.all.flags_of_host(host);
    if (!given || flags == nullptr) return turn.driver.cuMemHostGetFlags(flags, host);
    *flags = *given | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocHost_v2(const OwnCall& call, void** host, std::size_t size_bytes) {
  return own::cuMemHostAlloc(call, host, size_bytes, 0);
}

CUresult cuMemFreeHost(const OwnCall& call, void* host) {
  auto given = call.all.take_host(host);
  if (!given) return call.all.call([&](const Turn& turn) { return turn.driver.cuMemFreeHost(host); });
  const CUresult result = unpin(call, host);
  if (result != CUDA_SUCCESS) call.all.keep_host(std::move(*given));
  return result;
}

CUresult cuMemHostRegister_v2(const OwnCall& call, void* host, std::size_t size_bytes, unsigned int flags) {
  return pin(call, host, size_bytes, flags);
}

/// What cuMemHostAlloc() has given the program it has not registered.
CUresult cuMemHostUnregister(const OwnCall& call, void* host) {
  return call.all.flags_of_host(host) ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : unpin(call, host);
}

}  // namespace firebreak::virtual_driver::own
