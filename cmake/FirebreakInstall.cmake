# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the library with its header, pkg-config file and CMake package; the commands, and what they load
# from ../lib beside them. A component is a Debian package (packaging/debian/rules), and only here stands what is in it.
set(CMAKE_INSTALL_INCLUDEDIR include)
set(CMAKE_INSTALL_LIBDIR lib)  # the same everywhere: the commands look for what they load there
include(CMakePackageConfigHelpers)

install(TARGETS firebreak_client_shared EXPORT firebreak
  LIBRARY DESTINATION lib COMPONENT client NAMELINK_COMPONENT development)
install(DIRECTORY include/firebreak DESTINATION include COMPONENT development FILES_MATCHING PATTERN "*.h")
install(TARGETS firebreak_torch_shared LIBRARY DESTINATION lib COMPONENT python NAMELINK_COMPONENT development)
install(TARGETS firebreak_guard_shared LIBRARY DESTINATION lib COMPONENT preload)
install(DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/firebreak DESTINATION lib COMPONENT preload)

# What runs on a machine with a GPU.
install(TARGETS firebreak firebreakd firebreak-parking-client RUNTIME DESTINATION bin COMPONENT agent)
set(pages ${PROJECT_BINARY_DIR}/share)
set(completions bash-completion/completions)
install(FILES ${pages}/man/man1/firebreak.1 DESTINATION share/man/man1 COMPONENT agent)
install(FILES ${pages}/man/man8/firebreakd.8 DESTINATION share/man/man8 COMPONENT agent)
install(FILES ${pages}/${completions}/firebreak ${pages}/${completions}/firebreakd
  DESTINATION share/${completions} COMPONENT agent)
install(FILES packaging/firebreakd.service DESTINATION lib/systemd/system COMPONENT agent)
install(FILES packaging/firebreakd.toml DESTINATION etc/firebreak COMPONENT agent)
install(FILES packaging/sysusers.conf DESTINATION lib/sysusers.d RENAME firebreak.conf COMPONENT agent)
install(FILES packaging/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME firebreak.conf COMPONENT agent)
install(DIRECTORY docs/ DESTINATION share/doc/firebreak COMPONENT agent FILES_MATCHING PATTERN "*.md"
  PATTERN plots EXCLUDE)

# What it counts, for Prometheus.
install(TARGETS firebreak-exporter RUNTIME DESTINATION bin COMPONENT exporter)
install(FILES ${pages}/man/man8/firebreak-exporter.8 DESTINATION share/man/man8 COMPONENT exporter)
install(FILES ${pages}/${completions}/firebreak-exporter DESTINATION share/${completions} COMPONENT exporter)
install(FILES packaging/firebreak-exporter.service DESTINATION lib/systemd/system COMPONENT exporter)
install(FILES packaging/prometheus/alerts.yml packaging/prometheus/dashboard.json packaging/prometheus/scrape.yml
  DESTINATION share/firebreak-exporter COMPONENT exporter)

# Its domains' seats, for the kubelet, and its faults, for the API server.
install(TARGETS firebreak-k8s firebreak-nri RUNTIME DESTINATION bin COMPONENT k8s)
install(FILES ${pages}/man/man8/firebreak-k8s.8 ${pages}/man/man8/firebreak-nri.8
  DESTINATION share/man/man8 COMPONENT k8s)
install(FILES ${pages}/${completions}/firebreak-k8s ${pages}/${completions}/firebreak-nri
  DESTINATION share/${completions} COMPONENT k8s)
install(FILES packaging/firebreak-k8s.service packaging/firebreak-nri.service
  DESTINATION lib/systemd/system COMPONENT k8s)
install(DIRECTORY packaging/chart DESTINATION share/firebreak-k8s COMPONENT k8s)

# The laboratory.
install(TARGETS firebreak_inject_shared LIBRARY DESTINATION lib COMPONENT laboratory)
install(TARGETS firebreak-lab firebreak-decode firebreak-denoise firebreak-checker firebreak-forks firebreak-scribble
  RUNTIME DESTINATION bin COMPONENT laboratory)
install(TARGETS softgpu_cuda softgpu_nvidia_ml softgpu_plug_in
  LIBRARY DESTINATION lib/softgpu COMPONENT laboratory NAMELINK_SKIP)
install(TARGETS softgpu_mps_control RUNTIME DESTINATION lib/softgpu COMPONENT laboratory)

configure_file(cmake/firebreak.pc.in firebreak.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/firebreak.pc DESTINATION lib/pkgconfig COMPONENT development)
# The export is the whole package: it needs no other.
install(EXPORT firebreak FILE firebreak-config.cmake NAMESPACE firebreak:: DESTINATION lib/cmake/firebreak
  COMPONENT development)
write_basic_package_version_file(firebreak-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/firebreak-config-version.cmake DESTINATION lib/cmake/firebreak
  COMPONENT development)

# A built program looks for libraries where an installed one does: CMake would otherwise fill the place for that up with
# colons, and each empty element between them means the folder in which the program is started.
set_target_properties(firebreak_client_shared firebreak_torch_shared firebreak_guard_shared firebreak firebreakd
  firebreak-parking-client firebreak-exporter firebreak-k8s firebreak-nri firebreak_inject_shared firebreak-lab
  firebreak-decode firebreak-denoise firebreak-checker firebreak-forks firebreak-scribble softgpu_cuda softgpu_nvidia_ml
  softgpu_plug_in softgpu_mps_control PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
