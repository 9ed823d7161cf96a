// SPDX-License-Identifier: Apache-2.0
/// The functions that stand behind the rows of imports.cpp, by what they take. Each is as the C library's of
/// that name, for the copy that has taken what comes first.
#pragma once

#include <dirent.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cstdio>

#include "program/instance/taken.h"

namespace firebreak::instance::rows {

// rows_memory.cpp
void* allocate(Taken& taken, std::size_t size_bytes);
void give(Taken& taken, void* memory);
void* allocate_zeroed(Taken& taken, std::size_t count, std::size_t size_bytes);
void* resize(Taken& taken, void* memory, std::size_t size_bytes);
void* resize_array(Taken& taken, void* memory, std::size_t count, std::size_t size_bytes);
void* allocate_aligned(Taken& taken, std::size_t alignment_bytes, std::size_t size_bytes);
void* allocate_pages(Taken& taken, std::size_t size_bytes);
int allocate_aligned_into(Taken& taken, void** into, std::size_t alignment_bytes, std::size_t size_bytes);
std::size_t usable_bytes(Taken& taken, void* memory);
char* duplicate_text(Taken& taken, const char* text);
char* duplicate_text_up_to(Taken& taken, const char* text, std::size_t most);
void* map(Taken& taken, void* address, std::size_t size_bytes, int protection, int flags, int fd,
          off_t offset);
int unmap(Taken& taken, void* address, std::size_t size_bytes);
void* map_anew(Taken& taken, void* old, std::size_t old_bytes, std::size_t new_bytes, int flags,
               void* wanted);

// rows_descriptors.cpp
int open_file(Taken& taken, const char* path, int flags, mode_t mode);
int open_file_checked(Taken& taken, const char* path, int flags);
int open_file_at(Taken& taken, int folder, const char* path, int flags, mode_t mode);
int create_file(Taken& taken, const char* path, mode_t mode);
int close_descriptor(Taken& taken, int fd);
int duplicate(Taken& taken, int fd);
int duplicate_to(Taken& taken, int fd, int wanted);
int duplicate_to_with(Taken& taken, int fd, int wanted, int flags);
int control_descriptor(Taken& taken, int fd, int command, void* argument);
int make_pipe(Taken& taken, int* both);
int make_pipe_with(Taken& taken, int* both, int flags);
int make_event(Taken& taken, unsigned int value, int flags);
int make_poll(Taken& taken, int size);
int make_poll_with(Taken& taken, int flags);
int make_socket(Taken& taken, int family, int type, int protocol);
int make_socket_pair(Taken& taken, int family, int type, int protocol, int* both);
int accept_from(Taken& taken, int fd, sockaddr* name, socklen_t* size);
int accept_from_with(Taken& taken, int fd, sockaddr* name, socklen_t* size, int flags);
int bind_socket(Taken& taken, int fd, const sockaddr* name, socklen_t size);
ssize_t receive(Taken& taken, int fd, msghdr* message, int flags);
int make_temporary(Taken& taken, char* path);
long system_call(Taken& taken, long number, long first, long second, long third, long fourth, long fifth,
                 long sixth);
int make_memory_file(Taken& taken, const char* name, unsigned int flags);
int open_shared_memory(Taken& taken, const char* name, int flags, mode_t mode);
int make_inotify(Taken& taken);
int make_inotify_with(Taken& taken, int flags);
int make_timer(Taken& taken, int clock, int flags);
int make_signal_descriptor(Taken& taken, int fd, const sigset_t* set, int flags);
std::FILE* open_stream(Taken& taken, const char* path, const char* mode);
std::FILE* open_stream_on(Taken& taken, int fd, const char* mode);
int close_stream(Taken& taken, std::FILE* stream);

// rows_threads.cpp
int start_thread(Taken& taken, pthread_t* id, const pthread_attr_t* attributes, void* (*run)(void*),
                 void* argument);
int join_thread(Taken& taken, pthread_t id, void** result);
int detach_thread(Taken& taken, pthread_t id);
int set_mask(Taken& taken, int how, const sigset_t* set, sigset_t* before);
int set_mask_of_process(Taken& taken, int how, const sigset_t* set, sigset_t* before);
int make_key(Taken& taken, pthread_key_t* key, void (*destroy)(void*));
int delete_key(Taken& taken, pthread_key_t key);
int at_exit(Taken& taken, void (*action)());
int at_exit_with(Taken& taken, void (*action)(void*), void* argument, void* library);
int on_exit_with(Taken& taken, void (*action)(int, void*), void* argument);
void run_exits_of(Taken& taken, void* library);
int at_thread_exit(Taken& taken, void (*action)(void*), void* argument, void* library);
int at_fork(Taken& taken, void (*before)(), void (*parent)(), void (*child)());
int at_fork_of(Taken& taken, void (*before)(), void (*parent)(), void (*child)(), void* library);

// rows_rest.cpp
char* variable(Taken& taken, const char* name);
std::size_t write_text(Taken& taken, const void* from, std::size_t size_bytes, std::size_t count,
                       std::FILE* to);
void* load_library(Taken& taken, const char* file, int flags);
void* find_symbol(Taken& taken, void* library, const char* name);
void* find_symbol_for_debugger(Taken& taken, void* library, const char* name);
void* find_version(Taken& taken, void* library, const char* name, const char* version);
int unload_library(Taken& taken, void* library);

}  // namespace firebreak::instance::rows
