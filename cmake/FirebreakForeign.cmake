# SPDX-License-Identifier: Apache-2.0
# firebreak_for_foreign_programs(TARGET [OWN FUNCTION ...]): this shared library goes into programs that others built,
# with whatever C and C++ libraries these have. It needs glibc alone, of 2.27 or later. Nothing of libstdc++, libgcc and
# fmt is visible in it, so that nothing crosses between its copies and the program's.
# tests/product/foreign_library_test.cmake looks.

# What has a newer version than that where this is built: src/ground/foreign/old_glibc.c takes the calls to them.
set(newer_than_old_glibc __pthread_key_create _dl_find_object arc4random dladdr dlclose dlerror dlinfo dlopen dlsym
  dlvsym fstat fstat64 fstatat lstat pthread_cond_clockwait pthread_create pthread_detach pthread_join
  pthread_key_create pthread_key_delete pthread_mutex_clocklock pthread_once pthread_rwlock_rdlock
  pthread_rwlock_unlock pthread_rwlock_wrlock pthread_setname_np pthread_sigmask
  stat)
# What libstdc++ would have libm.so.6 for, in code that is not used.
set(of_no_use fegetround fesetround)
list(TRANSFORM newer_than_old_glibc PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE calls_to_old_glibc)
list(TRANSFORM of_no_use PREPEND "-Wl,--wrap=" OUTPUT_VARIABLE calls_of_no_use)

# OWN: what the library stands in for itself.
function(firebreak_for_foreign_programs target)
  cmake_parse_arguments(ARG "" "" "OWN" ${ARGN})
  if(FIREBREAK_SANITIZE)  # a sanitizer wants the shared C++ library
    return()
  endif()
  set(calls ${calls_to_old_glibc} ${calls_of_no_use})
  list(TRANSFORM ARG_OWN PREPEND "-Wl,--wrap=")
  list(REMOVE_ITEM calls ${ARG_OWN})
  # Before glibc 2.34 threads and the dynamic linker's functions are in libraries of their own.
  target_link_libraries(${target} PRIVATE $<TARGET_OBJECTS:firebreak_foreign>)
  set(old_libraries $<TARGET_FILE:firebreak_old_libdl>,$<TARGET_FILE:firebreak_old_libpthread>)
  # fmt's shared library is on the line as well, and not needed any more. Of a class with a pure function alone g++
  # would leave the answer to the program's library.
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--gc-sections
    -Wl,--as-needed,-u,__cxa_pure_virtual ${calls} -Wl,--push-state,--no-as-needed,${old_libraries},--pop-state)
  add_dependencies(${target} firebreak_old_libdl firebreak_old_libpthread)
endfunction()
