// SPDX-License-Identifier: Apache-2.0
#include "demo/output.h"

#include "ground/base/text.h"

namespace firebreak::demo {

Output read_output(os::Kernel& kernel, const std::string& path) {
  auto bytes = kernel.read_file(path);
  if (!bytes) return {};
  return {true, std::move(*bytes)};
}

std::uint64_t hash(const Output& output) { return fnv1a(output.bytes); }

}  // namespace firebreak::demo
