# SPDX-License-Identifier: Apache-2.0
# cmake -D NM=nm -D READELF=readelf -D FILE=program or library -D LABORATORY=lab -P product_test.cmake
# A folder of the laboratory is a namespace: no symbol of one is in FILE, nor a fake, and no library of the laboratory
# is loaded with it.
execute_process(COMMAND ${NM} --demangle ${FILE} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${READELF} --dynamic --wide ${FILE} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols MATCHES "firebreak|fb_")
  message(FATAL_ERROR "${FILE} has no symbol of ours: nothing could be found in it")
endif()
file(GLOB folders RELATIVE ${LABORATORY} ${LABORATORY}/*)
foreach(folder ${folders})
  if(IS_DIRECTORY ${LABORATORY}/${folder} AND symbols MATCHES "firebreak::${folder}::[^\n]*")
    message(FATAL_ERROR "${FILE} has something of lab/${folder}: ${CMAKE_MATCH_0}")
  endif()
endforeach()
if(symbols MATCHES "firebreak::[a-z_:]*Fake[^\n]*")
  message(FATAL_ERROR "${FILE} has a fake: ${CMAKE_MATCH_0}")
endif()
if(dynamic MATCHES "NEEDED[^\n]*(firebreak-softgpu|firebreak-inject|libcuda|nvidia-ml)[^\n]*")
  message(FATAL_ERROR "${FILE} loads a library of the laboratory, or a driver: ${CMAKE_MATCH_0}")
endif()
