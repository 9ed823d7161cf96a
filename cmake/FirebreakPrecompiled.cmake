# SPDX-License-Identifier: Apache-2.0
# What most files include from outside, compiled once for everybody. Nothing of our own is in it, and no file may count
# on it: the sanitizer presets do without, so that a file that forgets an include does not compile there.
# There are two, since g++ takes one only where all options agree: libraries are -fPIC, test programs -fPIE.
# nlohmann/json is not in them: whoever includes it pays for its instantiations, precompiled or not.
# Where ccache is, they are left out: a precompiled header differs from checkout to checkout, and then no checkout finds
# what another one has compiled.
option(FIREBREAK_PRECOMPILED_HEADERS "Compile what most files include once" ${without_compiler_cache})

if(FIREBREAK_PRECOMPILED_HEADERS)
  # Where the library's code comes from a precompiled header, g++ 12 sees bounds crossed in std::string's operator+ that
  # are not (the same bug as in FirebreakOptions.cmake). The sanitizer presets, which do without, still look.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    foreach(warning array-bounds stringop-overflow stringop-overread)
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-${warning}>)
    endforeach()
  endif()
  set(common <algorithm> <array> <charconv> <chrono> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional>
             <set> <span> <string> <string_view> <thread> <utility> <vector> <fmt/format.h> <tl/expected.hpp>)
  # A precompiled header belongs to a target, and a target has a source.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/nothing.cpp CONTENT "int main() {}\n")
  add_library(precompiled_for_libraries STATIC ${PROJECT_BINARY_DIR}/nothing.cpp)
  target_link_libraries(precompiled_for_libraries PRIVATE fmt::fmt tl::expected)
  target_precompile_headers(precompiled_for_libraries PRIVATE ${common})
  add_executable(precompiled_for_tests ${PROJECT_BINARY_DIR}/nothing.cpp)
  target_link_libraries(precompiled_for_tests PRIVATE fmt::fmt tl::expected GTest::gmock)
  target_precompile_headers(precompiled_for_tests PRIVATE ${common} <filesystem> <fstream> <gtest/gtest.h>
    <gmock/gmock.h>)
endif()

function(firebreak_precompiled target owner)
  if(FIREBREAK_PRECOMPILED_HEADERS)
    # g++ takes it only where what it was made with is defined, also by who does not link fmt.
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
