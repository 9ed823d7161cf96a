# SPDX-License-Identifier: Apache-2.0
# Everything from outside, each a Debian package named in `dev`.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # header only
# Fat binaries are compressed with these. Their archives alone: libfirebreak-guard.so may need nothing but libc.
foreach(name lz4 zstd)
  find_library(FIREBREAK_${name} NAMES lib${name}.a REQUIRED)
  find_path(FIREBREAK_${name}_INCLUDE_DIR ${name}.h REQUIRED)
  add_library(static_${name} STATIC IMPORTED)
  set_target_properties(static_${name} PROPERTIES IMPORTED_LOCATION ${FIREBREAK_${name}}
    INTERFACE_INCLUDE_DIRECTORIES ${FIREBREAK_${name}_INCLUDE_DIR})
endforeach()
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter)  # the binding's tests
find_package(GTest REQUIRED)
include(GoogleTest)

# Not from Debian alone, and not required: one page of the laboratory is bundled with them.
find_program(FIREBREAK_NPM npm DOC "installs what the page of `firebreak-lab characterize` is bundled from")
find_program(FIREBREAK_NODE NAMES node nodejs DOC "bundles that page")
set(FIREBREAK_HAS_PAGE 0)
if(FIREBREAK_NPM AND FIREBREAK_NODE)
  set(FIREBREAK_HAS_PAGE 1)
else()
  message(STATUS
    "No npm: `firebreak-lab characterize` has no --html (packages nodejs and npm; ./dev setup installs them)")
endif()
