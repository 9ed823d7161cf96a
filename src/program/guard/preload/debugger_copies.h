// SPDX-License-Identifier: Apache-2.0
/// NVIDIA's debugger library, which a driver loads when it is to write a core dump. It looks through the
/// process for a library that is called libcuda.so, and asks the first that it finds: the program's own
/// driver. So each private copy of the driver gets a private copy of the debugger, and that copy is answered
/// by its own driver. Without this an instance that is no program's own wrote no dump in a parked domain, and
/// its calls answered CUDA_ERROR_UNKNOWN (H100, driver 580.159.04).
#pragma once

namespace firebreak::guard {

/// What is to be loaded in place of `file`, as dlopen() gives it. Null: nothing else than that. `caller`: an
/// address in whoever asks.
void* debugger_in_place_of(const char* file, const void* caller);

/// The driver that a copy of the debugger belongs to, as dlopen() gave it. Null: `caller` is in no such copy.
void* driver_of_debugger(const void* caller);

}  // namespace firebreak::guard
