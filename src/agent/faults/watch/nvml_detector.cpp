// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/nvml_detector.h"

#include <utility>

#include "agent/faults/fault/xid.h"
#include "ground/os/self.h"

namespace firebreak::watch {
namespace {

constexpr unsigned long long wanted = abi::nvmlEventTypeXidCriticalError |
                                      abi::nvmlEventTypeDoubleBitEccError |
                                      abi::nvmlEventTypeSingleBitEccError;

fault::Fault fault_of(const abi::nvmlEventData_t& data, Monotonic when) {
  if (data.eventType == abi::nvmlEventTypeXidCriticalError)
    return fault::from_xid_number(static_cast<int>(data.eventData), fault::FaultSource::Nvml, when);
  fault::Fault fault;
  fault.when = when;
  fault.source = fault::FaultSource::Nvml;
  fault.fault_class = fault::FaultClass::Device;
  const bool corrected = data.eventType == abi::nvmlEventTypeSingleBitEccError;
  fault.kind = corrected ? "single-bit ECC error, corrected" : "double-bit ECC error";
  fault.conclusive = !corrected;
  return fault;
}

/// Finds the GPU by its address, where the library tells it: what NVML counts may be a part of the machine's.
fault::Gpu gpu_of(const abi::NvmlFunctions& nvml, abi::nvmlDevice_t device) {
  fault::Gpu gpu;
  unsigned int index = 0;
  if (nvml.nvmlDeviceGetIndex(device, &index) == abi::NVML_SUCCESS) gpu.number = index;
  gpu.pci = address_of(nvml, device);
  return gpu;
}

}  // namespace

NvmlDetector::NvmlDetector(os::EventLoop& loop, const Clock& clock, OpenLibrary open, FaultCallback on_fault,
                           EndCallback on_end)
    : loop_(loop),
      clock_(clock),
      open_(std::move(open)),
      listener_(std::make_shared<Listener>(Listener{std::move(on_fault), std::move(on_end)})) {}

NvmlDetector::~NvmlDetector() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
  if (events_ != nullptr) library_->call().nvmlEventSetFree(events_);
}

Status NvmlDetector::start() {
  Result<std::unique_ptr<NvmlLibrary>> library = open_();
  if (!library) return propagate(library);
  library_ = std::move(*library);
  const abi::NvmlFunctions& nvml = library_->call();
  unsigned int gpus = 0;
  if (nvml.nvmlDeviceGetCount_v2(&gpus) != abi::NVML_SUCCESS || gpus == 0) {
    return fail(ErrorCode::Unsupported, "no NVML events: NVML sees no GPU");
  }
  if (nvml.nvmlEventSetCreate(&events_) != abi::NVML_SUCCESS) {
    events_ = nullptr;
    return fail(ErrorCode::Unsupported, "no NVML events: NVML makes no event set");
  }
  Status last;
  bool any = false;
  for (unsigned int gpu = 0; gpu < gpus; ++gpu) {
    last = listen_to(gpu);
    any = any || last.has_value();
  }
  if (!any) return last;
  auto thread = os::start_thread([this] { wait_for_events(); });
  if (!thread) return propagate(thread, "no NVML events");
  thread_ = std::move(*thread);
  return {};
}

Status NvmlDetector::listen_to(unsigned int index) {
  const abi::NvmlFunctions& nvml = library_->call();
  abi::nvmlDevice_t device = nullptr;
  unsigned long long supported = 0;
  const bool known = nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) == abi::NVML_SUCCESS &&
                     nvml.nvmlDeviceGetSupportedEventTypes(device, &supported) == abi::NVML_SUCCESS;
  if (!known || (supported & wanted) == 0 ||
      nvml.nvmlDeviceRegisterEvents(device, supported & wanted, events_) != abi::NVML_SUCCESS) {
    return fail(ErrorCode::Unsupported, "no NVML events: GPU " + std::to_string(index) + " tells of none");
  }
  return {};
}

void NvmlDetector::wait_for_events() {
  const auto timeout_ms = static_cast<unsigned int>(longest_wait.count());
  while (!stopping_.load(std::memory_order_relaxed)) {
    abi::nvmlEventData_t data{};
    const abi::nvmlReturn_t status = library_->call().nvmlEventSetWait_v2(events_, &data, timeout_ms);
    if (status == abi::NVML_SUCCESS) {
      tell(data);
    } else if (status != abi::NVML_ERROR_TIMEOUT) {
      const Error error{
          ErrorCode::Device, "no NVML events any more: NVML answers " + std::to_string(status), {}};
      loop_.post([listener = std::weak_ptr(listener_), error] {
        if (const auto alive = listener.lock()) alive->on_end(error);
      });
      return;
    }
  }
}

void NvmlDetector::tell(const abi::nvmlEventData_t& data) {
  const Monotonic when = clock_.now();
  fault::Fault fault = fault_of(data, when);
  fault.gpu = gpu_of(library_->call(), data.device);
  loop_.post([listener = std::weak_ptr(listener_), fault = std::move(fault)] {
    if (const auto alive = listener.lock()) alive->on_fault(fault);
  });
}

}  // namespace firebreak::watch
