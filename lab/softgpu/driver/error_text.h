// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/abi/cuda_result.h"

namespace firebreak::softgpu::driver {

struct ErrorText {
  CUresult error;
  const char* name;
  const char* text;
};

/// Null for a number that is no error of the driver.
const ErrorText* find_error_text(CUresult error);

}  // namespace firebreak::softgpu::driver
