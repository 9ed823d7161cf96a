# SPDX-License-Identifier: Apache-2.0
# cmake -D LIBRARY=libfirebreak-guard.so -D PYTHON=python3 -D OLD_DRIVER=libcuda.so -P preload_test.cmake
# Under the preload a program that never asks for a GPU ends as it would without, and says nothing more.
cmake_policy(VERSION 3.25)

# Where the guard cannot do anything for one that does, that is one line more.
# check(OUTPUT ERRORS COMMAND...): every function is bound at once, so that none is missing.
function(check expected expected_errors)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_PRELOAD=${LIBRARY} LD_BIND_NOW=1 ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0 OR NOT output STREQUAL expected OR NOT errors STREQUAL expected_errors)
    message(FATAL_ERROR "${ARGN}: ${status}\n${output}\n${errors}")
  endif()
endfunction()

check("" "" /bin/true)
check("hi\n" "" sh -c "echo hi")
check("hi\n" "" ${CMAKE_COMMAND} -E echo hi)  # a program in C++, which has a libstdc++ of its own
check("thrown\n" "" ${PYTHON} -c "
try:
    raise ValueError('thrown')
except ValueError as error:
    print(error)")

set(old "${OLD_DRIVER} has no cuGetProcAddress_v2 (a driver for CUDA 12.0 or later (version 525) is needed)")
check("42 42\n" "firebreak: the guard is off: ${old}\n" ${PYTHON} -c "
import ctypes
driver = ctypes.CDLL('${OLD_DRIVER}')
print(driver.cuInit(7), driver.cuInit(7))")

# Whoever looks for a driver among all libraries finds none where none is loaded.
check("False\n" "" ${PYTHON} -c "
import ctypes
print(hasattr(ctypes.CDLL(None), 'cuInit'))")
string(REPLACE "${OLD_DRIVER}" "libcuda.so.1" old_by_name "${old}")
check("True 42\n" "firebreak: the guard is off: ${old_by_name}\n" ${PYTHON} -c "
import ctypes
ctypes.CDLL('${OLD_DRIVER}', ctypes.RTLD_GLOBAL)
everything = ctypes.CDLL(None)
print(hasattr(everything, 'cuInit'), everything.cuInit(7))")
