// SPDX-License-Identifier: Apache-2.0
/// Events are made, recorded, and asked for their times.
#include "program/virtual/calls.h"

namespace firebreak::virtual_driver::own {

CUresult cuEventCreate(const OwnCall& call, CUevent* event, unsigned int flags) {
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto again = [flags](Making& making) {
    return making.driver.cuEventCreate(reinterpret_cast<CUevent*>(&making.made), flags);
  };
  return call.all.call([&](const Turn& turn) {
    Making here{turn.driver, turn.slot, turn.objects};
    if (const CUresult result = again(here); result != CUDA_SUCCESS) return result;
    std::vector<Object::Step> steps{{.key = {}, .again = again, .context = current_context()}};
    Object& made = turn.objects.add(Family::Event, here.made, turn.slot, std::move(steps),
                                    {.parent = nullptr, .context = current_context()});
    const bool is_measured = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    made.time.is_measured.store(is_measured);
    if (is_measured) call.all.event_times().begin();
    call.all.something_new();
    *event = reinterpret_cast<CUevent>(made.seen);
    return CUDA_SUCCESS;
  });
}

namespace {

/// A capture records it nowhere.
template <class Record>
CUresult record(const OwnCall& call, CUevent event, CUstream stream, const Record& record_one) {
  return call.all.call([&](const Turn& turn) {
    const bool is_noted = call.all.event_times().is_any() && !call.all.graphs().are_captures_under_way();
    const std::int64_t called_ns = is_noted ? EventTimes::call_ns() : 0;
    const auto act = [&] {
      const CUresult recorded = record_one(turn.driver, turn.objects.translate(event, turn.slot),
                                           turn.objects.translate(stream, turn.slot));
      if (is_noted && recorded == CUDA_SUCCESS)
        EventTimes::note_call(turn.objects.find(Family::Event, number_of(event)), called_ns);
      return recorded;
    };
    constexpr auto purpose = CudaPurpose::Enqueues;
    return call.per_thread ? with_work<VIRTUAL_NOTE(cuEventRecord), purpose, true>(turn, act, event, stream)
                           : with_work<VIRTUAL_NOTE(cuEventRecord), purpose, false>(turn, act, event, stream);
  });
}

}  // namespace

CUresult cuEventRecord(const OwnCall& call, CUevent event, CUstream stream) {
  return record(call, event, stream, [&](const cuda::Backend& driver, CUevent own, CUstream into) {
    return call.which(driver.cuEventRecord, driver.cuEventRecord_ptsz)(own, into);
  });
}

CUresult cuEventRecordWithFlags(const OwnCall& call, CUevent event, CUstream stream, unsigned int flags) {
  return record(call, event, stream, [&](const cuda::Backend& driver, CUevent own, CUstream into) {
    return call.which(driver.cuEventRecordWithFlags, driver.cuEventRecordWithFlags_ptsz)(own, into, flags);
  });
}

namespace {

/// An instance knows nothing of what was recorded in another one.
template <class Ask>
CUresult elapsed(const OwnCall& call, float* milliseconds, CUevent start, CUevent end, const Ask& ask) {
  return call.all.call([&](const Turn& turn) {
    CUresult result = ask(turn.driver)(milliseconds, turn.objects.translate(start, turn.slot),
                                       turn.objects.translate(end, turn.slot));
    if (result == CUDA_ERROR_INVALID_HANDLE && milliseconds != nullptr)
      result = call.all.event_times().elapsed(turn.objects, turn.instance, milliseconds, start, end);
    if (result == CUDA_SUCCESS) call.all.saw_an_end();
    return result;
  });
}

}  // namespace

CUresult cuEventElapsedTime(const OwnCall& call, float* milliseconds, CUevent start, CUevent end) {
  return elapsed(call, milliseconds, start, end,
                 [](const cuda::Backend& driver) { return driver.cuEventElapsedTime; });
}

CUresult cuEventElapsedTime_v2(const OwnCall& call, float* milliseconds, CUevent start, CUevent end) {
  return elapsed(call, milliseconds, start, end,
                 [](const cuda::Backend& driver) { return driver.cuEventElapsedTime_v2; });
}

}  // namespace firebreak::virtual_driver::own
