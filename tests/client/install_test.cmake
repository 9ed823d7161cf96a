# SPDX-License-Identifier: Apache-2.0
# cmake -D BUILD=build folder -D EXAMPLES=examples -D FOLDER=scratch -D COMPILER=cc -D FLAGS=sanitizer's
#       -D PYTHON=python3 -P install_test.cmake
# An installation is all that an application needs, by pkg-config as by find_package, also after it was moved.
file(REMOVE_RECURSE ${FOLDER})
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${status}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/first)
file(RENAME ${FOLDER}/first ${FOLDER}/prefix)
file(COPY ${EXAMPLES}/ DESTINATION ${FOLDER}/source)

set(ENV{PKG_CONFIG_PATH} ${FOLDER}/prefix/lib/pkgconfig)
run(pkg-config --modversion firebreak)
run(pkg-config --cflags --libs firebreak)
separate_arguments(library UNIX_COMMAND "${output}")
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
run(${COMPILER} -std=gnu11 -Wall -Wextra -Werror ${flags} -o ${FOLDER}/by-pkg-config ${FOLDER}/source/numbers.c
  ${library} -ldl)

# By Ninja, as examples/README.md says: a machine that builds Firebreak has it, and may have no make.
run(${CMAKE_COMMAND} -G Ninja -S ${FOLDER}/source -B ${FOLDER}/build -D CMAKE_PREFIX_PATH=${FOLDER}/prefix -D
  CMAKE_C_COMPILER=${COMPILER}
    "-DCMAKE_C_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${FOLDER}/build)

# Both load the library, and find a GPU but no agent.
foreach(program ${FOLDER}/by-pkg-config ${FOLDER}/build/numbers ${FOLDER}/build/weights)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${FOLDER}/prefix/lib:${FOLDER}/prefix/lib/softgpu
                          FIREBREAK_SOFTGPU_DIR=${FOLDER}/gpu ${program}
                  RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 1 OR NOT errors MATCHES "^fb_join: 2 no agent")
    message(FATAL_ERROR "${program}: ${status}\n${errors}")
  endif()
endforeach()

# The Python binding finds the library of its installation; a sanitizer's library is for programs that have the
# sanitizer.
if(NOT FLAGS)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=FIREBREAK_LIBRARY_DIR PYTHONDONTWRITEBYTECODE=1
    PYTHONPATH=${FOLDER}/prefix/lib/python3/dist-packages
                          ${PYTHON} -c "import firebreak; print(firebreak.library_path()); firebreak.join()"
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 1 OR NOT output MATCHES "^${FOLDER}/prefix/lib/libfirebreak.so.0" OR NOT errors MATCHES
    "NoAgentError: no agent")
    message(FATAL_ERROR "the Python binding: ${status}\n${output}${errors}")
  endif()
endif()

# The commands find what they load: the software GPU, libfirebreak, and the library that raises faults.
run(${CMAKE_COMMAND} -E env FIREBREAK_GPU=soft FIREBREAK_SOFTGPU_DIR=${FOLDER}/gpu ${FOLDER}/prefix/bin/firebreak-lab
  inject --list)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${FOLDER}/prefix/lib/softgpu FIREBREAK_SOFTGPU_DIR=${FOLDER}/gpu
    ${FOLDER}/prefix/bin/firebreak-decode --standalone --steps 2)
foreach(file lib/libfirebreak.so lib/libfirebreak.so.0 lib/libfirebreak-inject.so lib/libfirebreak-guard.so
  lib/libfirebreak-torch.so.0 lib/softgpu/libcuda.so.1
             lib/softgpu/libfirebreak-softgpu.so bin/firebreak bin/firebreakd lib/softgpu/nvidia-cuda-mps-control
             include/firebreak/firebreak.h include/firebreak/torch.h lib/systemd/system/firebreakd.service
             lib/sysusers.d/firebreak.conf lib/tmpfiles.d/firebreak.conf etc/firebreak/firebreakd.toml)
  if(NOT EXISTS ${FOLDER}/prefix/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
file(REMOVE_RECURSE ${FOLDER})
