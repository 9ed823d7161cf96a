// SPDX-License-Identifier: Apache-2.0
/// Tests use this: Linux itself, and how much of processes' descriptors was looked at.
#pragma once

#include <string>

#include "ground/os/real_kernel.h"

namespace firebreak::os {

class CountingKernel : public RealKernel {
 public:
  Result<Fd> open(const std::string& path, int flags) override {
    if (path.ends_with("/fd")) ++counts;
    return RealKernel::open(path, flags);
  }
  Result<DescriptorLinks> read_links(const std::string& directory, int from) override {
    auto read = RealKernel::read_links(directory, from);
    if (read) links += static_cast<int>(read->all.size());
    return read;
  }
  int counts = 0;  ///< folders of descriptors opened
  int links = 0;   ///< descriptors whose target was read
};

}  // namespace firebreak::os
