// SPDX-License-Identifier: Apache-2.0
/// What a program loads as code: how long it is, and which variables it has on the GPU.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::virtual_driver {

/// PTX as text, a cubin (ELF) or a fat binary, by what it says of itself. 0: none of these.
/// Sources: the PTX ISA; ELF-64; the magic 0xBA55ED50 and the sizes behind it as cuobjdump reads them.
std::size_t code_image_bytes(const void* image);

/// The names of the variables in .global that it declares, which its kernels may change. Empty: it is not
/// known. Only of PTX.
std::optional<std::vector<std::string>> variables_of(std::string_view image);

}  // namespace firebreak::virtual_driver
