# SPDX-License-Identifier: Apache-2.0
# The report's page becomes two strings in the library. node_modules and the bundle stay in the build tree.
# Where npm is missing or failed (cmake/FirebreakDependencies.cmake) there is no page, and firebreak-lab says so.
if(NOT FIREBREAK_HAS_PAGE)
  set(page_cpp page/none.cpp)
  return()
endif()

set(page ${CMAKE_CURRENT_SOURCE_DIR}/page)
file(GLOB page_sources CONFIGURE_DEPENDS ${page}/source/*)

set(bundle ${FIREBREAK_PAGE_BUILD}/report.js ${FIREBREAK_PAGE_BUILD}/report.css)
add_custom_command(OUTPUT ${bundle}
  COMMAND ${CMAKE_COMMAND} -E copy ${page}/build.mjs ${FIREBREAK_PAGE_BUILD}
  COMMAND ${FIREBREAK_NODE} build.mjs ${page}/source ${FIREBREAK_PAGE_BUILD}
  DEPENDS ${FIREBREAK_PAGE_BUILD}/installed.stamp ${page}/build.mjs ${page_sources}
  WORKING_DIRECTORY ${FIREBREAK_PAGE_BUILD}
  COMMENT "Bundling the page of firebreak-lab characterize" VERBATIM)

set(page_cpp)
foreach(part IN ITEMS script:report.js style:report.css)
  string(REPLACE ":" ";" part ${part})
  list(GET part 0 name)
  list(GET part 1 file)
  set(embedded ${FIREBREAK_PAGE_BUILD}/page_${name}.cpp)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -D IN=${FIREBREAK_PAGE_BUILD}/${file} -D NAMESPACE=firebreak::characterize
            -D FUNCTION=page_${name} -D OUT=${embedded} -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${FIREBREAK_PAGE_BUILD}/${file} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
  list(APPEND page_cpp ${embedded})
endforeach()
