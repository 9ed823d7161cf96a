# SPDX-License-Identifier: Apache-2.0
# One folder is one target: these functions keep every folder's CMakeLists to a few lines.

# What includes are relative to. Nothing in src/ finds a header of lab/.
function(firebreak_include_roots target scope)
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/src/")
    target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR}/lab ${PROJECT_SOURCE_DIR})
  endif()
endfunction()

# firebreak_library(NAME SOURCES ... [DEPENDS folder ...] [LINK target ...])
# Without a source to compile the library is headers only. DEPENDS names other folders of src/ or lab/: whatever its
# files include of ours is of those, or of what they depend on in turn; `tidy` says what is missing, and what nobody
# uses.
function(firebreak_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND firebreak_)
  set(compiled ${ARG_SOURCES})
  list(FILTER compiled EXCLUDE REGEX "\\.(h|def)$")
  if(compiled)
    add_library(firebreak_${name} STATIC ${ARG_SOURCES})
    firebreak_precompiled(firebreak_${name} precompiled_for_libraries)
    set(scope PUBLIC)
  else()
    add_library(firebreak_${name} INTERFACE ${ARG_SOURCES})
    set(scope INTERFACE)
  endif()
  firebreak_include_roots(firebreak_${name} ${scope})
  target_link_libraries(firebreak_${name} ${scope} ${ARG_DEPENDS} ${ARG_LINK})
endfunction()

# A test that takes longer hangs. Under a sanitizer some take twenty times the time.
set(test_limit_s 300)
if(FIREBREAK_SANITIZE)
  set(test_limit_s 900)
endif()

# firebreak_test(NAME SOURCES ... [DEPENDS folder ...] [LINK target ...])
# One test program, NAME_test; every case in it becomes a ctest test.
function(firebreak_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND firebreak_)
  add_executable(${name}_test ${ARG_SOURCES})
  firebreak_precompiled(${name}_test precompiled_for_tests)
  firebreak_include_roots(${name}_test PRIVATE)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})  # tests/doubles
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPENDS} ${ARG_LINK} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}." PROPERTIES TIMEOUT ${test_limit_s})
endfunction()

# firebreak_pages(PROGRAM SECTION): its manual page and its shell completion, which it prints itself
# (src/ground/pages), beside the build's other files in share/.
function(firebreak_pages program section)
  set(manual ${PROJECT_BINARY_DIR}/share/man/man${section})
  set(completions ${PROJECT_BINARY_DIR}/share/bash-completion/completions)
  add_custom_command(TARGET ${program} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E make_directory ${manual} ${completions}
    COMMAND ${program} --print-manual-page > ${manual}/${program}.${section}
    COMMAND ${program} --print-completion > ${completions}/${program})
endfunction()

# firebreak_python_test(NAME FILE): one file of unittest. What it starts is there when ctest runs: everything is built
# by then.
function(firebreak_python_test name file)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${file} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(path ${PROJECT_SOURCE_DIR}/python ${PROJECT_SOURCE_DIR}/python/tests ${PROJECT_SOURCE_DIR}/lab/workloads)
  list(JOIN path ":" path)
  set(environment PYTHONPATH=${path} PYTHONDONTWRITEBYTECODE=1 FIREBREAK_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    FIREBREAK_LIBRARY_DIR=${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${environment}")
endfunction()
