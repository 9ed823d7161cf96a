# SPDX-License-Identifier: Apache-2.0
# Everything from outside, each a Debian package named in `dev`.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(prometheus-cpp-core REQUIRED IMPORTED_TARGET prometheus-cpp-core)  # firebreak-exporter
find_library(CIVETWEB_CPP civetweb-cpp REQUIRED)  # serves it
find_library(CIVETWEB civetweb REQUIRED)
pkg_check_modules(grpc REQUIRED IMPORTED_TARGET grpc++)  # firebreak-k8s speaks it
pkg_check_modules(protobuf REQUIRED IMPORTED_TARGET protobuf)
pkg_check_modules(curl REQUIRED IMPORTED_TARGET libcurl>=7.85)  # and asks an API server
pkg_check_modules(yaml-cpp REQUIRED IMPORTED_TARGET yaml-cpp)  # reads a kubeconfig
pkg_check_modules(openssl REQUIRED IMPORTED_TARGET openssl)  # the tests' API server
find_program(FIREBREAK_PROTOC protoc REQUIRED)
find_program(FIREBREAK_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # header only
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # likewise
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
set(FIREBREAK_PAGE_BUILD ${PROJECT_BINARY_DIR}/lab/characterize/page)

# While configuring, so that an npm that fails leaves the page out, and nothing else. Configured again, it is tried
# again.
function(firebreak_install_page status)
  set(page ${PROJECT_SOURCE_DIR}/lab/characterize/page)
  foreach(file package.json package-lock.json .npmrc)
    configure_file(${page}/${file} ${FIREBREAK_PAGE_BUILD}/${file} COPYONLY)
    file(SHA256 ${page}/${file} hash)
    string(APPEND wanted "${file} ${hash}\n")
  endforeach()
  set(stamp ${FIREBREAK_PAGE_BUILD}/installed.stamp)
  if(EXISTS ${stamp})
    file(READ ${stamp} installed)
  endif()
  set(failed 0)
  if(NOT installed STREQUAL wanted)
    message(STATUS "npm ci for the page of firebreak-lab characterize")
    execute_process(COMMAND ${FIREBREAK_NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
      WORKING_DIRECTORY ${FIREBREAK_PAGE_BUILD} RESULT_VARIABLE failed TIMEOUT 300)
    if(failed EQUAL 0)
      file(WRITE ${stamp} "${wanted}")
    endif()
  endif()
  set(${status} "${failed}" PARENT_SCOPE)
endfunction()

set(FIREBREAK_NPM_STATUS "none")
if(FIREBREAK_NPM AND FIREBREAK_NODE)
  firebreak_install_page(FIREBREAK_NPM_STATUS)
endif()
if(FIREBREAK_NPM_STATUS EQUAL 0)
  set(FIREBREAK_HAS_PAGE 1)
else()
  message(WARNING "No npm, or it failed (${FIREBREAK_NPM_STATUS}): `firebreak-lab characterize` has no --html "
    "(packages nodejs and npm; ./dev setup installs them)")
endif()
