# SPDX-License-Identifier: Apache-2.0
# Several files of a target are compiled as one (CMake's unity builds): what they include is read once for all of them.
# The sanitizer presets do without: there a file that forgets an include does not compile. So does who has ccache, which
# would compile all of them again for a change in one. Who changes one file all day may want -DFIREBREAK_UNITY=OFF, too.
option(FIREBREAK_UNITY "Compile several files of a target as one" ${without_compiler_cache})

if(FIREBREAK_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)
  # A name of one file hides what another one keeps for itself.
  add_compile_options(-Wno-shadow)
endif()

# firebreak_apart(TARGET ALL | FILE ...): these are compiled alone, since they keep a name for themselves that another
# file of the target keeps, too.
function(firebreak_apart target)
  if("${ARGN}" STREQUAL ALL)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  else()
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# firebreak_by_the_file(TARGET ...): of these libraries, and of ours that they link, each file stays an object of its
# own. What goes into other people's programs then takes the objects that it needs, and nothing that these do not need:
# no exit(), and no library besides. tests/client/symbols_test.cmake and tests/product/foreign_library_test.cmake look.
function(firebreak_by_the_file)
  foreach(target IN LISTS ARGN)
    get_target_property(is_done ${target} FIREBREAK_BY_THE_FILE)
    if(is_done)
      continue()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF FIREBREAK_BY_THE_FILE ON)
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(links ${target} ${property})
      list(FILTER links INCLUDE REGEX "^firebreak_")
      firebreak_by_the_file(${links})
    endforeach()
  endforeach()
endfunction()
