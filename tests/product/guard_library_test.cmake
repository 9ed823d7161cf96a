# SPDX-License-Identifier: Apache-2.0
# cmake -D NM=nm -D FILE=libfirebreak-guard.so -P guard_library_test.cmake
# It is loaded into other people's programs: it exports what it stands in for.
execute_process(COMMAND ${NM} -D --defined-only ${FILE} OUTPUT_VARIABLE defined COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " [A-Za-z] [^\n]+" symbols "${defined}")
set(starts execl|execlp|execv|execve|execvp|execle|execvpe|execveat|fexecve|posix_spawnp?|system|popen|wordexp)
set(stood_in_for cu[A-Z][A-Za-z0-9_]*|dlsym|${starts}|dlopen|mmap|mmap64|munmap|bind|fopen|fopen64)
foreach(symbol ${symbols})
  string(REGEX REPLACE "^ [A-Za-z] " "" name "${symbol}")
  if(NOT name MATCHES "^(${stood_in_for})$")
    message(FATAL_ERROR "${FILE} exports more than it stands in for: ${symbol}")
  endif()
endforeach()
