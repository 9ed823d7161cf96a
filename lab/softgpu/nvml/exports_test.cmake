# SPDX-License-Identifier: Apache-2.0
# cmake -D NM=nm -D LIBRARY=libnvidia-ml.so -P exports_test.cmake: whoever loads it sees NVML's functions alone.
execute_process(COMMAND ${NM} --dynamic --defined-only --format=just-symbols ${LIBRARY}
                OUTPUT_VARIABLE symbols OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" symbols "${symbols}")
set(found 0)
foreach(symbol ${symbols})
  if(symbol MATCHES "^nvml[A-Z][A-Za-z]+(_v[23])?$")
    math(EXPR found "${found} + 1")
  else()
    message(SEND_ERROR "${LIBRARY} exports ${symbol}")
  endif()
endforeach()
if(NOT found EQUAL 15)
  message(SEND_ERROR "${LIBRARY} exports ${found} of NVML's functions, not the 15 of src/ground/platform/nvml.h")
endif()
