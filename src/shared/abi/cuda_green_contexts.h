// SPDX-License-Identifier: Apache-2.0
/// Layouts of green contexts, as far as somebody here looks into them. They are the CUDA driver's own: the
/// comparison with NVIDIA's header is in tests/toolkit/toolkit_arrays_check.cpp.
#pragma once

#include "shared/abi/cuda_opaque_types.h"

enum CUdevResourceType : int {
  CU_DEV_RESOURCE_TYPE_INVALID = 0,
  CU_DEV_RESOURCE_TYPE_SM = 1,
};

struct CUdevSmResource {
  unsigned int smCount;
  unsigned int minSmPartitionSize;
  unsigned int smCoscheduledAlignment;
};

/// `_internal_padding` is the driver's.
struct CUdevResource {
  CUdevResourceType type;
  unsigned char _internal_padding[92];
  union {
    CUdevSmResource sm;
    unsigned char _oversize[48];
  };
};

inline constexpr unsigned int CU_GREEN_CTX_DEFAULT_STREAM = 0x1;
