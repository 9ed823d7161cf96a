# SPDX-License-Identifier: Apache-2.0
# How everything is compiled: one language level, every warning an error, sanitizers by option.
# Not in what ships: at -O3 g++ 12 warns of bounds in the standard library that nobody crosses.
option(FIREBREAK_WERROR "Warnings are errors" ON)
set(FIREBREAK_SANITIZE "" CACHE STRING "Value for -fsanitize=, for example address,undefined or thread")

option(FIREBREAK_FUZZ "Build firebreak_fuzz, and everything as libFuzzer wants it: with clang" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                    $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
# g++ 12 sees overlaps in std::string's operator+ that are not there once it optimises (GCC bug 105651).
add_compile_options($<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(FIREBREAK_WERROR)
  add_compile_options(-Werror)
endif()
if(FIREBREAK_SANITIZE)
  add_compile_options(-fsanitize=${FIREBREAK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FIREBREAK_SANITIZE})
endif()

if(FIREBREAK_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# A write past a buffer, and a jump that nobody meant, end the process where they happen.
# tests/product/hardening_test.py looks at what is installed. A sanitizer does the same better, and not beside it.
if(NOT FIREBREAK_SANITIZE)
  add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-fcf-protection=full FIREBREAK_HAS_CET)
  if(FIREBREAK_HAS_CET)
    add_compile_options(-fcf-protection=full)
  endif()
  add_link_options(-Wl,-z,relro,-z,now)
endif()

# What saves a cold build its time takes the use out of a compiler's cache (FirebreakPrecompiled, FirebreakUnity).
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(without_compiler_cache OFF)
else()
  set(without_compiler_cache ON)
endif()
