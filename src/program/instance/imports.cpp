// SPDX-License-Identifier: Apache-2.0
#include "program/instance/imports.h"

#include <dirent.h>
#include <dlfcn.h>
#include <ftw.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdlib>
#include <utility>

#include "program/instance/rows.h"

namespace firebreak::instance {
namespace {

/// A row's function for the copy at one place: the copy calls it as the C library's.
template <auto function, std::size_t place>
struct Entry;

template <class Result, class... Arguments, Result (*function)(Taken&, Arguments...), std::size_t place>
struct Entry<function, place> {
  static Result call(Arguments... arguments) {
    Held::enter();
    if constexpr (std::is_void_v<Result>) {
      function(taken_at(place), arguments...);
      Held::leave();
    } else {
      const Result result = function(taken_at(place), arguments...);
      Held::leave();
      return result;
    }
  }
};

template <auto function>
const void* entry(std::size_t place) {
  static constexpr auto all = []<std::size_t... each>(std::index_sequence<each...>) {
    return std::array{&Entry<function, each>::call...};
  }
  (std::make_index_sequence<places_max>());
  return reinterpret_cast<const void*>(all[place]);
}

/// One that waits for others, and holds nothing meanwhile.
template <std::size_t place>
int join(pthread_t id, void** result) {
  return rows::join_thread(taken_at(place), id, result);
}
const void* entry_of_join(std::size_t place) {
  static constexpr auto all = []<std::size_t... each>(std::index_sequence<each...>) {
    return std::array{&join<each>...};
  }
  (std::make_index_sequence<places_max>());
  return reinterpret_cast<const void*>(all[place]);
}

/// The C library's own, in which nobody is ended: it has a lock of the process's.
template <auto function>
struct Passed;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Passed<function> {
  static Result call(Arguments... arguments) {
    Held::enter();
    if constexpr (std::is_void_v<Result>) {
      function(arguments...);
      Held::leave();
    } else {
      const Result result = function(arguments...);
      Held::leave();
      return result;
    }
  }
};
template <auto function>
const void* passed(std::size_t) {
  return reinterpret_cast<const void*>(&Passed<function>::call);
}

int print(const char* format, ...) {
  Held::enter();
  std::va_list more;
  va_start(more, format);
  const int count = std::vprintf(format, more);
  va_end(more);
  Held::leave();
  return count;
}
int print_to(std::FILE* stream, const char* format, ...) {
  Held::enter();
  std::va_list more;
  va_start(more, format);
  const int count = std::vfprintf(stream, format, more);
  va_end(more);
  Held::leave();
  return count;
}
int print_checked(int, const char* format, ...) {
  Held::enter();
  std::va_list more;
  va_start(more, format);
  const int count = std::vprintf(format, more);
  va_end(more);
  Held::leave();
  return count;
}
int print_to_checked(std::FILE* stream, int, const char* format, ...) {
  Held::enter();
  std::va_list more;
  va_start(more, format);
  const int count = std::vfprintf(stream, format, more);
  va_end(more);
  Held::leave();
  return count;
}
int scan_from(std::FILE* stream, const char* format, ...) {
  Held::enter();
  std::va_list more;
  va_start(more, format);
  const int count = std::vfscanf(stream, format, more);
  va_end(more);
  Held::leave();
  return count;
}
template <auto function>
const void* as_it_is(std::size_t) {
  return reinterpret_cast<const void*>(function);
}

using enum Import;

constexpr ImportRow table[] = {
    {"malloc", Memory, &entry<&rows::allocate>},
    {"free", Memory, &entry<&rows::give>},
    {"cfree", Memory, &entry<&rows::give>},
    {"calloc", Memory, &entry<&rows::allocate_zeroed>},
    {"realloc", Memory, &entry<&rows::resize>},
    {"reallocarray", Memory, &entry<&rows::resize_array>},
    {"memalign", Memory, &entry<&rows::allocate_aligned>},
    {"aligned_alloc", Memory, &entry<&rows::allocate_aligned>},
    {"valloc", Memory, &entry<&rows::allocate_pages>},
    {"pvalloc", Memory, &entry<&rows::allocate_pages>},
    {"posix_memalign", Memory, &entry<&rows::allocate_aligned_into>},
    {"malloc_usable_size", Memory, &entry<&rows::usable_bytes>},
    {"strdup", Memory, &entry<&rows::duplicate_text>},
    {"__strdup", Memory, &entry<&rows::duplicate_text>},
    {"strndup", Memory, &entry<&rows::duplicate_text_up_to>},
    {"__strndup", Memory, &entry<&rows::duplicate_text_up_to>},

    {"mmap", Mapping, &entry<&rows::map>},
    {"mmap64", Mapping, &entry<&rows::map>},
    {"munmap", Mapping, &entry<&rows::unmap>},
    {"mremap", Mapping, &entry<&rows::map_anew>},

    {"open", Descriptor, &entry<&rows::open_file>},
    {"open64", Descriptor, &entry<&rows::open_file>},
    {"__open", Descriptor, &entry<&rows::open_file>},
    {"__open64", Descriptor, &entry<&rows::open_file>},
    {"__open_2", Descriptor, &entry<&rows::open_file_checked>},
    {"__open64_2", Descriptor, &entry<&rows::open_file_checked>},
    {"openat", Descriptor, &entry<&rows::open_file_at>},
    {"openat64", Descriptor, &entry<&rows::open_file_at>},
    {"creat", Descriptor, &entry<&rows::create_file>},
    {"creat64", Descriptor, &entry<&rows::create_file>},
    {"close", Descriptor, &entry<&rows::close_descriptor>},
    {"__close", Descriptor, &entry<&rows::close_descriptor>},
    {"dup", Descriptor, &entry<&rows::duplicate>},
    {"dup2", Descriptor, &entry<&rows::duplicate_to>},
    {"dup3", Descriptor, &entry<&rows::duplicate_to_with>},
    {"fcntl", Descriptor, &entry<&rows::control_descriptor>},
    {"fcntl64", Descriptor, &entry<&rows::control_descriptor>},
    {"pipe", Descriptor, &entry<&rows::make_pipe>},
    {"pipe2", Descriptor, &entry<&rows::make_pipe_with>},
    {"eventfd", Descriptor, &entry<&rows::make_event>},
    {"epoll_create", Descriptor, &entry<&rows::make_poll>},
    {"epoll_create1", Descriptor, &entry<&rows::make_poll_with>},
    {"socket", Descriptor, &entry<&rows::make_socket>},
    {"socketpair", Descriptor, &entry<&rows::make_socket_pair>},
    {"accept", Descriptor, &entry<&rows::accept_from>},
    {"accept4", Descriptor, &entry<&rows::accept_from_with>},
    {"bind", Descriptor, &entry<&rows::bind_socket>},
    {"recvmsg", Descriptor, &entry<&rows::receive>},
    {"mkstemp", Descriptor, &entry<&rows::make_temporary>},
    {"syscall", Descriptor, &entry<&rows::system_call>},
    {"memfd_create", Descriptor, &entry<&rows::make_memory_file>},
    {"shm_open", Descriptor, &entry<&rows::open_shared_memory>},
    {"inotify_init", Descriptor, &entry<&rows::make_inotify>},
    {"inotify_init1", Descriptor, &entry<&rows::make_inotify_with>},
    {"timerfd_create", Descriptor, &entry<&rows::make_timer>},
    {"signalfd", Descriptor, &entry<&rows::make_signal_descriptor>},

    {"fopen", Stream, &entry<&rows::open_stream>},
    {"fopen64", Stream, &entry<&rows::open_stream>},
    {"fdopen", Stream, &entry<&rows::open_stream_on>},
    {"fclose", Stream, &entry<&rows::close_stream>},

    {"pthread_create", Thread, &entry<&rows::start_thread>},
    {"pthread_join", Thread, &entry_of_join},
    {"pthread_detach", Thread, &entry<&rows::detach_thread>},
    {"pthread_sigmask", Signals, &entry<&rows::set_mask>},
    {"sigprocmask", Signals, &entry<&rows::set_mask_of_process>},

    {"pthread_key_create", Key, &entry<&rows::make_key>},
    {"__pthread_key_create", Key, &entry<&rows::make_key>},
    {"pthread_key_delete", Key, &entry<&rows::delete_key>},
    {"__cxa_thread_atexit_impl", Key, &entry<&rows::at_thread_exit>},

    {"atexit", Exit, &entry<&rows::at_exit>},
    {"__cxa_atexit", Exit, &entry<&rows::at_exit_with>},
    {"on_exit", Exit, &entry<&rows::on_exit_with>},
    {"__cxa_finalize", Exit, &entry<&rows::run_exits_of>},
    {"pthread_atfork", Exit, &entry<&rows::at_fork>},
    {"__register_atfork", Exit, &entry<&rows::at_fork_of>},

    {"getenv", Environment, &entry<&rows::variable>},
    {"secure_getenv", Environment, &entry<&rows::variable>},
    {"__secure_getenv", Environment, &entry<&rows::variable>},

    {"dlopen", Linker, &entry<&rows::load_library>},
    {"dlsym", Linker, &entry<&rows::find_symbol>, &entry<&rows::find_symbol_for_debugger>},
    {"dlvsym", Linker, &entry<&rows::find_version>},
    {"dlclose", Linker, &entry<&rows::unload_library>},

    {"dladdr", Locked, &passed<&::dladdr>},
    {"dlerror", Locked, &passed<&::dlerror>},
    {"dl_iterate_phdr", Locked, &passed<&::dl_iterate_phdr>},
    {"fread", Locked, &passed<&std::fread>},
    {"fwrite", Locked, &entry<&rows::write_text>},
    {"fgets", Locked, &passed<&std::fgets>},
    {"fputs", Locked, &passed<&std::fputs>},
    {"fputc", Locked, &passed<&std::fputc>},
    {"puts", Locked, &passed<&std::puts>},
    {"putchar", Locked, &passed<&std::putchar>},
    {"perror", Locked, &passed<&std::perror>},
    {"fflush", Locked, &passed<&std::fflush>},
    {"fseek", Locked, &passed<&std::fseek>},
    {"ftell", Locked, &passed<&std::ftell>},
    {"vprintf", Locked, &passed<&std::vprintf>},
    {"vfprintf", Locked, &passed<&std::vfprintf>},
    {"printf", Locked, &as_it_is<&print>},
    {"fprintf", Locked, &as_it_is<&print_to>},
    {"__printf_chk", Locked, &as_it_is<&print_checked>},
    {"__fprintf_chk", Locked, &as_it_is<&print_to_checked>},
    {"feof", Locked, &passed<&std::feof>},
    {"ferror", Locked, &passed<&std::ferror>},
    {"rewind", Locked, &passed<&std::rewind>},
    {"_IO_putc", Locked, &passed<&std::fputc>},
    {"fscanf", Locked, &as_it_is<&scan_from>},
    {"__isoc99_fscanf", Locked, &as_it_is<&scan_from>},
    {"__isoc23_fscanf", Locked, &as_it_is<&scan_from>},
    {"getline", Locked, &passed<&::getline>},
    {"__getdelim", Locked, &passed<&::getdelim>},
    {"getdelim", Locked, &passed<&::getdelim>},
    {"popen", Locked, &passed<&::popen>},
    {"pclose", Locked, &passed<&::pclose>},
    {"opendir", Locked, &passed<&::opendir>},
    {"readdir", Locked, &passed<&::readdir>},
    {"readdir64", Locked, &passed<&::readdir64>},
    {"closedir", Locked, &passed<&::closedir>},
    {"scandir64", Locked, &passed<&::scandir64>},
    {"nftw", Locked, &passed<&::nftw>},
    {"realpath", Locked, &passed<&::realpath>},
    {"localtime", Locked, &passed<&::localtime>},
    {"localtime_r", Locked, &passed<&::localtime_r>},
    {"mktime", Locked, &passed<&::mktime>},
    {"strftime", Locked, &passed<&::strftime>},
    {"setenv", Locked, &passed<&::setenv>},
    {"unsetenv", Locked, &passed<&::unsetenv>},
    {"putenv", Locked, &passed<&::putenv>},
    {"rand", Locked, &passed<&std::rand>},
    {"random", Locked, &passed<&::random>},
};

}  // namespace

std::span<const ImportRow> import_table() { return table; }

}  // namespace firebreak::instance
