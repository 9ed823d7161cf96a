// SPDX-License-Identifier: Apache-2.0
/// The PTX in what a program loads.
#pragma once

#include <string>

#include "softgpu/driver/answer.h"

namespace firebreak::softgpu::driver {

/// This takes a text, a fat binary or one in nvcc's wrapper, and finds the newest that this GPU takes.
/// Machine code is nothing to it: the answer is NO_BINARY_FOR_GPU where there is nothing else.
Answer<std::string> ptx_of_image(const void* image);
/// The same of a file's content.
Answer<std::string> ptx_of_file(const std::string& content);

}  // namespace firebreak::softgpu::driver
