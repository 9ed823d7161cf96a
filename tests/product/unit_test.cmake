# SPDX-License-Identifier: Apache-2.0
# The exposure of the packaged unit by `systemd-analyze security`, which docs/use/security.md names: it gets no worse.
#   cmake -D UNIT=file -D MOST=tenths -P unit_test.cmake
find_program(ANALYZE systemd-analyze)
if(NOT ANALYZE)
  message("skipped: there is no systemd-analyze")
  return()
endif()
execute_process(COMMAND ${ANALYZE} security --offline=true --no-pager --threshold=${MOST} ${UNIT}
  OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE status)
if(NOT said MATCHES "Overall exposure level[^\n]*")
  message("skipped: this systemd-analyze does not look at unit files: ${said}")
  return()
endif()
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${CMAKE_MATCH_0}, in tenths it was ${MOST}:\n${said}")
endif()
