// SPDX-License-Identifier: Apache-2.0
/// The driver's own compiler makes machine code of PTX before it is loaded: the one way to instructions that
/// PTX has no word for, on every GPU generation.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "program/cuda/driver.h"

namespace firebreak::inject {

/// Tells whether the driver has a linker that gives its result away; the software GPU's has none.
bool can_compile(const cuda::Driver& driver);

/// The binary (an ELF file) of `ptx` for the current context's GPU. Needs can_compile().
Result<std::vector<std::byte>> compile(const cuda::Driver& driver, std::string_view ptx);

/// The instructions of a kernel inside a binary; empty when there is none of that name, or the binary is no
/// ELF file.
std::span<std::byte> code_of(std::span<std::byte> binary, std::string_view kernel);

}  // namespace firebreak::inject
