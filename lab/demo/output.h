// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ground/os/kernel.h"

namespace firebreak::demo {

/// A tenant's output file.
struct Output {
  bool exists = false;
  std::string bytes;
};

Output read_output(os::Kernel& kernel, const std::string& path);

/// FNV-1a, 64 bits: for people to compare; the demo compares the bytes.
std::uint64_t hash(const Output& output);

}  // namespace firebreak::demo
