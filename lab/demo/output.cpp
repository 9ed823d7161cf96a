// SPDX-License-Identifier: Apache-2.0
#include "demo/output.h"

namespace firebreak::demo {

Output read_output(os::Kernel& kernel, const std::string& path) {
  auto bytes = kernel.read_file(path);
  if (!bytes) return {};
  return {true, std::move(*bytes)};
}

std::uint64_t hash(const Output& output) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : output.bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace firebreak::demo
