// SPDX-License-Identifier: Apache-2.0
#include "inject/device/device_fault.h"

#include <utility>

#include "inject/report.h"

namespace firebreak::inject {
namespace {

using RaiseDeviceFault = CUresult (*)(int xid);
constexpr const char* function_name = "firebreakSoftgpuRaiseDeviceFault";

class DeviceInjection final : public Injection {
 public:
  DeviceInjection(RaiseDeviceFault raise_fault, int xid, cuda::Stream stream)
      : raise_fault_(raise_fault), xid_(xid), stream_(std::move(stream)) {}

  RaisedFault raise() override {
    const std::int64_t launched_at_ns = now_ns();
    return wait_and_report(stream_, launched_at_ns, raise_fault_(xid_));
  }

 private:
  RaiseDeviceFault raise_fault_;
  int xid_;
  cuda::Stream stream_;
};

}  // namespace

Prepared prepare_device_fault(const cuda::ContextView& context, int xid) {
  const auto raise_fault = reinterpret_cast<RaiseDeviceFault>(context.driver().symbol(function_name));
  if (raise_fault == nullptr) {
    return fail(
        ErrorCode::Unsupported,
        "a fault of the device itself is never raised on a real GPU: it would end everybody's work there",
        "set FIREBREAK_GPU=soft");
  }
  const auto current = context.make_current();
  if (!current) return propagate(current);
  auto stream = cuda::Stream::create(context.driver());
  if (!stream) return propagate(stream);
  return std::make_unique<DeviceInjection>(raise_fault, xid, std::move(*stream));
}

}  // namespace firebreak::inject
