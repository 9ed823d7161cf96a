// SPDX-License-Identifier: Apache-2.0
/// An entry point that NVIDIA's library does not have: faults of the device itself, on purpose.
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

extern "C" {

/// Posts the Xid's log line and NVML events and makes the processes that it reaches answer errors, as rows of
/// softgpu/machine/fault_table.cpp say; returns when later calls of this process answer the error.
/// NOT_INITIALIZED before cuInit, INVALID_VALUE for an Xid that is not there, SUCCESS else.
CUresult firebreakSoftgpuRaiseDeviceFault(int xid) {
  return with_process([&](Process& process) { return process.raise_device_fault(xid); });
}

}  // extern "C"
