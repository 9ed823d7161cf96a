// SPDX-License-Identifier: Apache-2.0
/// The part of NVML that is used here, in our own declarations; names and values are those of NVIDIA's
/// nvml.h. The library is loaded at run time and optional.
#pragma once

#include <cstddef>
#include <cstdint>

namespace firebreak::abi {

inline constexpr const char* nvml_library_name = "libnvidia-ml.so.1";

using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlEventSet_t = struct nvmlEventSet_st*;

enum nvmlReturn_t : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_UNKNOWN = 999,
};

// Event types: bits of one mask.
inline constexpr unsigned long long nvmlEventTypeSingleBitEccError = 0x1;
inline constexpr unsigned long long nvmlEventTypeDoubleBitEccError = 0x2;
inline constexpr unsigned long long nvmlEventTypeXidCriticalError = 0x8;

struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType;
  unsigned long long eventData;  ///< the Xid, for nvmlEventTypeXidCriticalError
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
static_assert(sizeof(nvmlEventData_t) == 32 && offsetof(nvmlEventData_t, eventData) == 16);

struct nvmlMemory_t {
  unsigned long long total;  ///< bytes, all three
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(nvmlMemory_t) == 24);

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];  ///< "00000000:3B:00.0"
};
static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, domain) == 16);
inline constexpr unsigned int nvml_uuid_bytes = 96;  ///< with room for every form

// What a GPU's compute mode may be.
inline constexpr unsigned int NVML_COMPUTEMODE_DEFAULT = 0;
inline constexpr unsigned int NVML_COMPUTEMODE_PROHIBITED = 2;
inline constexpr unsigned int NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3;

struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;  ///< bytes, or NVML_VALUE_NOT_AVAILABLE
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
};
static_assert(sizeof(nvmlProcessInfo_t) == 24 && offsetof(nvmlProcessInfo_t, gpuInstanceId) == 16);
inline constexpr unsigned long long NVML_VALUE_NOT_AVAILABLE = ~0ull;

/// The functions, by the names under which the library exports them.
struct NvmlFunctions {
  nvmlReturn_t (*nvmlInit_v2)();
  nvmlReturn_t (*nvmlShutdown)();
  nvmlReturn_t (*nvmlDeviceGetCount_v2)(unsigned int* count);
  nvmlReturn_t (*nvmlDeviceGetHandleByIndex_v2)(unsigned int index, nvmlDevice_t* device);
  nvmlReturn_t (*nvmlDeviceGetIndex)(nvmlDevice_t device, unsigned int* index);
  nvmlReturn_t (*nvmlDeviceGetMemoryInfo)(nvmlDevice_t device, nvmlMemory_t* memory);
  nvmlReturn_t (*nvmlEventSetCreate)(nvmlEventSet_t* set);
  nvmlReturn_t (*nvmlDeviceGetSupportedEventTypes)(nvmlDevice_t device, unsigned long long* event_types);
  nvmlReturn_t (*nvmlDeviceRegisterEvents)(nvmlDevice_t device, unsigned long long event_types,
                                           nvmlEventSet_t set);
  nvmlReturn_t (*nvmlEventSetWait_v2)(nvmlEventSet_t set, nvmlEventData_t* data, unsigned int timeout_ms);
  nvmlReturn_t (*nvmlEventSetFree)(nvmlEventSet_t set);
  /// `count`: how many there is room for, then how many there are. Null in older libraries.
  nvmlReturn_t (*nvmlDeviceGetComputeRunningProcesses_v3)(nvmlDevice_t device, unsigned int* count,
                                                          nvmlProcessInfo_t* processes);
  nvmlReturn_t (*nvmlDeviceGetPciInfo_v3)(nvmlDevice_t device, nvmlPciInfo_t* pci);  ///< may be null; both
  nvmlReturn_t (*nvmlDeviceGetUUID)(nvmlDevice_t device, char* uuid, unsigned int size_bytes);
  nvmlReturn_t (*nvmlDeviceGetComputeMode)(nvmlDevice_t device, unsigned int* mode);  ///< may be null
};

}  // namespace firebreak::abi
