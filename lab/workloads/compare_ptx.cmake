# SPDX-License-Identifier: Apache-2.0
# cmake -D BUILT=file -D COMMITTED=file -P compare_ptx.cmake: the PTX in the repository is what nvcc makes of the
# kernels today. Only comparable where this nvcc is the version that made the committed file.
set(version_line "Cuda compilation tools, release [^\n]*")
file(READ ${BUILT} built)
file(READ ${COMMITTED} committed)
string(REGEX MATCH "${version_line}" built_version "${built}")
string(REGEX MATCH "${version_line}" committed_version "${committed}")
if(NOT built_version STREQUAL committed_version)
  message("skipped: this nvcc is \"${built_version}\", the committed PTX is by \"${committed_version}\"")
elseif(NOT built STREQUAL committed)
  message(FATAL_ERROR "${COMMITTED} is not what nvcc makes of the kernels: copy ${BUILT} over it")
endif()
