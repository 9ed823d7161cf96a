// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker answers depends on who asks: a library (FIREBREAK_OPENER_LIBRARY) that opens
// another by a name without a folder, which its own run path alone leads to, and that asks for the next one
// of its own name. And a program that has them do it.
#include <dlfcn.h>

#include <cstdio>

extern "C" __attribute__((visibility("default"))) int firebreak_test_open(const char* name);

#ifdef FIREBREAK_OPENER_LIBRARY

/// Both answers are looked at before the return, so neither call is a jump.
extern "C" int firebreak_test_open(const char* name) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  std::printf("opened %d: %s\n", library != nullptr, library != nullptr ? "" : dlerror());
  void* const next = dlsym(RTLD_NEXT, "firebreak_test_open");
  std::printf("next %s\n", next == nullptr                                        ? "nobody"
                           : next == reinterpret_cast<void*>(firebreak_test_open) ? "itself"
                                                                                  : "another");
  void* const driver = dlsym(RTLD_NEXT, "cuFirebreakTestKnowsNoSuch");
  std::printf("unknown %d: %d\n", driver != nullptr, dlerror() != nullptr);
  return library != nullptr ? 0 : 1;
}

#else

int main(int argc, char** argv) { return argc == 2 ? firebreak_test_open(argv[1]) : 2; }

#endif
