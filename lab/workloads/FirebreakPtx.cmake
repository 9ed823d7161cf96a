# SPDX-License-Identifier: Apache-2.0
# Kernels become PTX, and PTX becomes a string in a program.
find_program(FIREBREAK_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda /opt/cuda /usr/lib/cuda
             PATH_SUFFIXES bin DOC "CUDA compiler; without it the PTX in the repository is used")
# No fused multiply-add but where it is written: see workloads/common/portable_math.h.
set(FIREBREAK_NVCC_FLAGS -ptx -arch=compute_80 -std=c++20 -fmad=false -I ${PROJECT_SOURCE_DIR}/lab)

# firebreak_ptx(NAME): NAME.cu of this folder, embedded into a source file that defines
# std::string_view firebreak::workloads::NAME::ptx(). The committed NAME.ptx is taken where there is no nvcc; a test
# compares the two. Sets NAME_PTX_SOURCE.
function(firebreak_ptx name)
  set(committed ${CMAKE_CURRENT_SOURCE_DIR}/${name}.ptx)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu)
  set(ptx ${committed})
  if(FIREBREAK_NVCC)
    set(ptx ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx)
    add_custom_command(OUTPUT ${ptx}
      COMMAND ${FIREBREAK_NVCC} ${FIREBREAK_NVCC_FLAGS} -MD -MF ${ptx}.d -o ${ptx} ${source}
      DEPENDS ${source} DEPFILE ${ptx}.d COMMENT "nvcc ${name}.ptx" VERBATIM)
    add_test(NAME workloads.${name}_ptx_is_committed
      COMMAND ${CMAKE_COMMAND} -D BUILT=${ptx} -D COMMITTED=${committed}
              -P ${PROJECT_SOURCE_DIR}/lab/workloads/compare_ptx.cmake)
    set_tests_properties(workloads.${name}_ptx_is_committed PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
  else()
    message(STATUS "No nvcc: ${name} uses the PTX of the repository")
  endif()
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/${name}_ptx.cpp)
  add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -D IN=${ptx} -D NAMESPACE=firebreak::workloads::${name} -D FUNCTION=ptx
            -D OUT=${embedded} -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${ptx} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
  set(${name}_PTX_SOURCE ${embedded} PARENT_SCOPE)
endfunction()
