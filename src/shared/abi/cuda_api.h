// SPDX-License-Identifier: Apache-2.0
/// The CUDA driver API as data: the rows of cuda_api.def. Constant; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace firebreak::abi {

/// The purpose of a function.
enum class CudaPurpose {
  Creates,   ///< makes an object, or answers one that its parent has: a function of a module, a context of a
             ///< device
  Destroys,  ///< ends one, or gives a reference back
  Configures,    ///< changes an object, or what is current
  Builds,        ///< changes a graph
  Exports,       ///< makes an object known to other processes
  Maps,          ///< decides what memory stands behind which addresses, and who may use it
  Launches,      ///< queues a kernel, a graph or a host function
  Copies,        ///< copies memory; with a stream among its parameters in stream order
  Fills,         ///< fills memory; likewise
  Enqueues,      ///< queues anything else: waits, records, operations on memory, prefetches
  Captures,      ///< begins, ends or asks for a capture of a stream
  Synchronizes,  ///< waits for queued work, or asks whether it has ended
  Queries,       ///< answers, and changes nothing
  Other,         ///< the process's own: errors, entry points, core dumps, logs, checkpoints
};

/// The meaning of a parameter to somebody who has to translate or record a call.
enum class CudaParameterKind {
  Handle,              ///< a handle of an object
  HandleOut,           ///< place where one handle is written
  HandleArray,         ///< handles; `length` names how many
  HandleArrayOut,      ///< place where several handles are written
  HandlesInside,       ///< a structure that holds handles, or has room for them
  Stream,              ///< null and two small numbers are the default streams
  Device,              ///< the number of a device
  DeviceOut,           ///< place where a device is written
  DevicePointer,       ///< an address on the GPU
  DevicePointerOut,    ///< place where a device pointer is written
  DevicePointerArray,  ///< addresses; `length` names how many
  KernelParameters,    ///< place of a kernel's own parameters
  HostIn,              ///< memory of the process that the driver reads
  HostOut,             ///< memory of the process that the driver writes
  Size,                ///< bytes, elements or how many
  Flags,
  Value,     ///< a number that needs no translation
  Callback,  ///< a function of the program's
};

/// The suffix of a symbol whose default stream is the calling thread's own.
enum class CudaPerThread { same, ptsz, ptds };

struct CudaParameter {
  CudaParameterKind kind{};
  std::string_view type;
  std::string_view name;
  std::string_view length;  ///< name of the parameter that says how long an array is; empty for everything
                            ///< else
};

struct CudaFunction {
  std::string_view symbol;
  std::string_view name;
  int since = 0;
  CudaPerThread per_thread{};
  CudaPurpose purpose{};
  std::span<const CudaParameter> parameters;

  /// "cuMemcpyHtoD_v2_ptds"; empty: there is no such symbol.
  std::string_view per_thread_symbol;
};

/// Returns every function, in the order of cuda_api.def.
std::span<const CudaFunction> cuda_functions();

/// Finds a function by the name that dlsym() knows it by; its per-thread symbol is not looked for. Null:
/// there is none.
const CudaFunction* cuda_function_of_symbol(std::string_view symbol);

/// Returns what cuGetProcAddress answers for `name` at that CUDA version. Null: nothing of that name, or none
/// so old.
const CudaFunction* cuda_function_at(std::string_view name, int cuda_version);

/// True when any version of the function is known.
bool is_cuda_function_name(std::string_view name);

}  // namespace firebreak::abi
