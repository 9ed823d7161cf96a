// SPDX-License-Identifier: Apache-2.0
/// A target for libFuzzer: firebreak_fuzz TARGET [LIBFUZZER'S ARGUMENTS]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {

const firebreak::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const auto all = firebreak::fuzz::targets();
  // libFuzzer starts this program again to merge or to minimise, and leaves the target out.
  const char* const inherited = std::getenv("FIREBREAK_FUZZ_TARGET");
  const std::string_view name = inherited != nullptr ? inherited : *count > 1 ? (*arguments)[1] : "";
  const auto found = std::ranges::find(all, name, &firebreak::fuzz::Target::name);
  if (found == all.end()) {
    std::fprintf(stderr, "usage: firebreak_fuzz TARGET [ARGUMENTS]; the targets are:\n");
    for (const auto& each : all)
      std::fprintf(stderr, "  %.*s\n", static_cast<int>(each.name.size()), each.name.data());
    std::exit(2);
  }
  if (!found->is_possible()) {
    std::fprintf(stderr, "%.*s needs root\n", static_cast<int>(found->name.size()), found->name.data());
    std::exit(2);
  }
  chosen = &*found;
  if (inherited != nullptr) return 0;
  ::setenv("FIREBREAK_FUZZ_TARGET", (*arguments)[1], 1);
  std::rotate(*arguments + 1, *arguments + 2, *arguments + *count);
  --*count;
  return 0;
}

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                                                             std::size_t size) {
  chosen->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
