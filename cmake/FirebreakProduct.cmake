# SPDX-License-Identifier: Apache-2.0
# The target `product`: every program and shared library but the tests, so that running needs no tests built.
function(firebreak_product_targets folder result)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  set(found)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "EXECUTABLE|SHARED_LIBRARY" AND NOT target MATCHES "_test$")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(inner ${folders})
    firebreak_product_targets(${inner} more)
    list(APPEND found ${more})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

add_custom_target(product)
foreach(folder src lab/softgpu lab/inject lab/commands lab/workloads)
  firebreak_product_targets(${PROJECT_SOURCE_DIR}/${folder} programs)
  add_dependencies(product ${programs})
endforeach()

# The target `main_job`: what `./dev run` needs of that. What speaks with a monitoring system or an orchestrator is left
# out, with the large libraries that it comes with.
add_custom_target(main_job)
foreach(folder src/agent src/commands/cli src/program lab/softgpu lab/inject lab/commands lab/workloads)
  firebreak_product_targets(${PROJECT_SOURCE_DIR}/${folder} programs)
  list(FILTER programs EXCLUDE REGEX "_test_|_torch")
  add_dependencies(main_job ${programs})
endforeach()
