# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the library with its header, pkg-config file and CMake package; the commands, and what they load
# from ../lib beside them.
set(CMAKE_INSTALL_INCLUDEDIR include)
set(CMAKE_INSTALL_LIBDIR lib)  # the same everywhere: the commands look for what they load there
include(CMakePackageConfigHelpers)

install(TARGETS firebreak_client_shared EXPORT firebreak LIBRARY DESTINATION lib)
install(DIRECTORY include/firebreak DESTINATION include FILES_MATCHING PATTERN "*.h")
install(TARGETS firebreak_guard_shared firebreak_torch_shared LIBRARY DESTINATION lib)
install(TARGETS firebreak firebreakd firebreak-parking-client RUNTIME DESTINATION bin)
# The laboratory.
install(TARGETS firebreak_inject_shared LIBRARY DESTINATION lib)
install(TARGETS firebreak-lab firebreak-decode firebreak-denoise firebreak-checker
  firebreak-forks firebreak-scribble RUNTIME DESTINATION
  bin)
install(TARGETS softgpu_cuda softgpu_nvidia_ml softgpu_plug_in LIBRARY DESTINATION lib/softgpu NAMELINK_SKIP)
install(TARGETS softgpu_mps_control RUNTIME DESTINATION bin/softgpu)

configure_file(cmake/firebreak.pc.in firebreak.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/firebreak.pc DESTINATION lib/pkgconfig)
# The export is the whole package: it needs no other.
install(EXPORT firebreak FILE firebreak-config.cmake NAMESPACE firebreak:: DESTINATION lib/cmake/firebreak)
write_basic_package_version_file(firebreak-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/firebreak-config-version.cmake DESTINATION lib/cmake/firebreak)
