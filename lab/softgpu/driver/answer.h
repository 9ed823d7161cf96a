// SPDX-License-Identifier: Apache-2.0
/// The driver's own results: a value, or the CUresult that the entry point answers.
#pragma once

#include <tl/expected.hpp>

#include "shared/abi/cuda_result.h"

namespace firebreak::softgpu::driver {

template <class T>
using Answer = tl::expected<T, CUresult>;

inline tl::unexpected<CUresult> refuse(CUresult error) { return tl::unexpected<CUresult>(error); }

}  // namespace firebreak::softgpu::driver
