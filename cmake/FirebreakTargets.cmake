# SPDX-License-Identifier: Apache-2.0
# One folder is one target: these functions keep every folder's CMakeLists to a few lines.

# firebreak_library(NAME SOURCES ... [DEPENDS folder ...] [LINK target ...])
# Without SOURCES the library is headers only. DEPENDS names other folders of src/ or softgpu/.
function(firebreak_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND firebreak_)
  if(ARG_SOURCES)
    add_library(firebreak_${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(firebreak_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(firebreak_${name} ${scope} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
                                                        ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(firebreak_${name} ${scope} ${ARG_DEPENDS} ${ARG_LINK})
endfunction()

# firebreak_test(NAME SOURCES ... [DEPENDS folder ...] [LINK target ...])
# One test program, NAME_test; every case in it becomes a ctest test.
function(firebreak_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND firebreak_)
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}
                                                  ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPENDS} ${ARG_LINK} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}." PROPERTIES TIMEOUT 300)
endfunction()

# firebreak_python_test(NAME FILE): one file of unittest. What it starts is there when ctest runs: everything is built by then.
function(firebreak_python_test name file)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${file} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set(path ${PROJECT_SOURCE_DIR}/python ${PROJECT_SOURCE_DIR}/python/tests ${PROJECT_SOURCE_DIR}/workloads)
  list(JOIN path ":" path)
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 ENVIRONMENT
    "PYTHONPATH=${path};PYTHONDONTWRITEBYTECODE=1;FIREBREAK_PROGRAMS=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};FIREBREAK_LIBRARY_DIR=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
endfunction()
