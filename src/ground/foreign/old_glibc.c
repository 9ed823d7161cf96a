// SPDX-License-Identifier: Apache-2.0
/// The C library's functions as glibc 2.27 has them. Built on a newer one, a program asks for the version
/// there, and an older one then loads nothing of it, though the function has been the same for twenty years.
/// So the linker sends each call, also those in libstdc++.a and libgcc_eh.a, to the __wrap_ function here
/// (cmake/FirebreakForeign.cmake).
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/// libstdc++ asks it whether it may do without atomics. "No" is never wrong.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

// Functions of libm.so.6, which nothing else here needs. libstdc++ asks for the rounding mode where it reads
// a long double, which nobody here has it do; a double it reads without.
int __wrap_fegetround(void) { return 0; }         // FE_TONEAREST
int __wrap_fesetround(int mode) { return mode; }  // not 0: the mode is not there

// These stand in libdl.so.2 before glibc 2.34.
int old_dladdr(const void* address, Dl_info* info);
int old_dlclose(void* library);
char* old_dlerror(void);
int old_dlinfo(void* library, int request, void* answer);
void* old_dlopen(const char* file, int flags);
void* old_dlsym(void* handle, const char* name);
void* old_dlvsym(void* handle, const char* name, const char* version);
__asm__(".symver old_dladdr, dladdr@GLIBC_2.2.5");
__asm__(".symver old_dlclose, dlclose@GLIBC_2.2.5");
__asm__(".symver old_dlerror, dlerror@GLIBC_2.2.5");
__asm__(".symver old_dlinfo, dlinfo@GLIBC_2.3.3");
__asm__(".symver old_dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver old_dlvsym, dlvsym@GLIBC_2.2.5");

int __wrap_dladdr(const void* address, Dl_info* info) { return old_dladdr(address, info); }
int __wrap_dlclose(void* library) { return old_dlclose(library); }
char* __wrap_dlerror(void) { return old_dlerror(); }
int __wrap_dlinfo(void* library, int request, void* answer) { return old_dlinfo(library, request, answer); }
void* __wrap_dlopen(const char* file, int flags) { return old_dlopen(file, flags); }
void* __wrap_dlsym(void* handle, const char* name) { return old_dlsym(handle, name); }
void* __wrap_dlvsym(void* handle, const char* name, const char* version) {
  return old_dlvsym(handle, name, version);
}

// Inline functions around these before glibc 2.33. The first argument says which `struct stat` is meant.
enum { stat_version = 1 };
int __xstat(int version, const char* path, struct stat* status);
int __fxstat(int version, int fd, struct stat* status);
int __lxstat(int version, const char* path, struct stat* status);
int __fxstatat(int version, int directory, const char* path, struct stat* status, int flags);

int __wrap_stat(const char* path, struct stat* status) { return __xstat(stat_version, path, status); }
int __wrap_fstat(int fd, struct stat* status) { return __fxstat(stat_version, fd, status); }
int __wrap_fstat64(int fd, struct stat* status) { return __fxstat(stat_version, fd, status); }
int __wrap_lstat(const char* path, struct stat* status) { return __lxstat(stat_version, path, status); }
int __wrap_fstatat(int directory, const char* path, struct stat* status, int flags) {
  return __fxstatat(stat_version, directory, path, status, flags);
}

// These stand in libpthread.so.0 before glibc 2.34.
int old_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                       void* argument);
int old_pthread_detach(pthread_t thread);
int old_pthread_join(pthread_t thread, void** result);
int old_pthread_key_create(pthread_key_t* key, void (*destroy)(void*));
int old_pthread_key_delete(pthread_key_t key);
int old_pthread_mutex_timedlock(pthread_mutex_t* mutex, const struct timespec* until);
int old_pthread_once(pthread_once_t* once, void (*run)(void));
int old_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int old_pthread_rwlock_unlock(pthread_rwlock_t* lock);
int old_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int old_pthread_setname_np(pthread_t thread, const char* name);
int old_pthread_sigmask(int how, const sigset_t* set, sigset_t* before);
__asm__(".symver old_pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver old_pthread_detach, pthread_detach@GLIBC_2.2.5");
__asm__(".symver old_pthread_join, pthread_join@GLIBC_2.2.5");
__asm__(".symver old_pthread_key_create, pthread_key_create@GLIBC_2.2.5");
__asm__(".symver old_pthread_key_delete, pthread_key_delete@GLIBC_2.2.5");
__asm__(".symver old_pthread_mutex_timedlock, pthread_mutex_timedlock@GLIBC_2.2.5");
__asm__(".symver old_pthread_once, pthread_once@GLIBC_2.2.5");
__asm__(".symver old_pthread_rwlock_rdlock, pthread_rwlock_rdlock@GLIBC_2.2.5");
__asm__(".symver old_pthread_rwlock_unlock, pthread_rwlock_unlock@GLIBC_2.2.5");
__asm__(".symver old_pthread_rwlock_wrlock, pthread_rwlock_wrlock@GLIBC_2.2.5");
__asm__(".symver old_pthread_setname_np, pthread_setname_np@GLIBC_2.12");
__asm__(".symver old_pthread_sigmask, pthread_sigmask@GLIBC_2.2.5");

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                          void* argument) {
  return old_pthread_create(thread, attributes, run, argument);
}
int __wrap_pthread_detach(pthread_t thread) { return old_pthread_detach(thread); }
int __wrap_pthread_join(pthread_t thread, void** result) { return old_pthread_join(thread, result); }
/// libgcc asks for its address alone, to know whether there may be threads.
int __wrap___pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return old_pthread_key_create(key, destroy);
}
int __wrap_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  return old_pthread_key_create(key, destroy);
}
int __wrap_pthread_key_delete(pthread_key_t key) { return old_pthread_key_delete(key); }
int __wrap_pthread_once(pthread_once_t* once, void (*run)(void)) { return old_pthread_once(once, run); }
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) { return old_pthread_rwlock_rdlock(lock); }
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* lock) { return old_pthread_rwlock_unlock(lock); }
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) { return old_pthread_rwlock_wrlock(lock); }
int __wrap_pthread_setname_np(pthread_t thread, const char* name) {
  return old_pthread_setname_np(thread, name);
}
int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return old_pthread_sigmask(how, set, before);
}

// Functions that later releases have and 2.27 has not, where they are there.
typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
typedef int ClockLock(pthread_mutex_t*, clockid_t, const struct timespec*);
typedef int FindObject(void*, struct dl_find_object*);
static _Atomic(ClockWait*) clock_wait;
static _Atomic(ClockLock*) clock_lock;
static _Atomic(FindObject*) find_object;

/// Runs before the first constructor of ours. No function is asked for in vain, since the program would see
/// it in dlerror().
__attribute__((constructor(101))) static void look_for_later_functions(void) {
  const char* const version = gnu_get_libc_version();
  const long minor = strncmp(version, "2.", 2) == 0 ? strtol(version + 2, NULL, 10) : 0;
  if (minor >= 30) {
    const char* const since = minor >= 34 ? "GLIBC_2.34" : "GLIBC_2.30";
    atomic_store(&clock_wait,
                 (ClockWait*)(uintptr_t)old_dlvsym(RTLD_DEFAULT, "pthread_cond_clockwait", since));
    atomic_store(&clock_lock,
                 (ClockLock*)(uintptr_t)old_dlvsym(RTLD_DEFAULT, "pthread_mutex_clocklock", since));
  }
  if (minor >= 35)
    atomic_store(&find_object,
                 (FindObject*)(uintptr_t)old_dlvsym(RTLD_DEFAULT, "_dl_find_object", "GLIBC_2.35"));
}

/// The same moment by the wall clock.
static struct timespec by_wall_clock(clockid_t clock, const struct timespec* until) {
  enum { second_ns = 1000000000 };
  struct timespec now;
  struct timespec wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_sec--;
    wall.tv_nsec += second_ns;
  } else if (wall.tv_nsec >= second_ns) {
    wall.tv_sec++;
    wall.tv_nsec -= second_ns;
  }
  return wall;
}

/// A wall clock that is set meanwhile makes the wait end early or late where the later function is missing.
/// libstdc++ looks at the clock again in any case.
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  ClockWait* const later = atomic_load(&clock_wait);
  if (later != NULL) return later(condition, mutex, clock, until);
  const struct timespec wall = by_wall_clock(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  ClockLock* const later = atomic_load(&clock_lock);
  if (later != NULL) return later(mutex, clock, until);
  const struct timespec wall = by_wall_clock(clock, until);
  return old_pthread_mutex_timedlock(mutex, &wall);
}

struct Search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int is_object_of(struct dl_phdr_info* object, size_t size, void* argument) {
  (void)size;
  const struct Search* const search = argument;
  const ElfW(Phdr)* covering = NULL;
  const ElfW(Phdr)* unwinding = NULL;
  for (int each = 0; each < object->dlpi_phnum; each++) {
    const ElfW(Phdr)* const header = &object->dlpi_phdr[each];
    const uintptr_t begin = object->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) unwinding = header;
    if (header->p_type == PT_LOAD && search->address - begin < header->p_memsz) covering = header;
  }
  if (covering == NULL || unwinding == NULL) return 0;
  const uintptr_t begin = object->dlpi_addr + covering->p_vaddr;
  search->result->dlfo_map_start = (void*)begin;
  search->result->dlfo_map_end = (void*)(begin + covering->p_memsz);
  search->result->dlfo_eh_frame = (void*)(object->dlpi_addr + unwinding->p_vaddr);
  return 1;
}

/// Tells the unwinder where the frames of the code at `address` are.
int __wrap__dl_find_object(void* address, struct dl_find_object* result) {
  FindObject* const later = atomic_load(&find_object);
  if (later != NULL) return later(address, result);
  memset(result, 0, sizeof *result);
  struct Search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(&is_object_of, &search) == 1 ? 0 : -1;
}

/// Serves std::random_device alone; nothing secret comes from it. Kernels before 3.17 have none.
uint32_t __wrap_arc4random(void) {
  uint32_t number = 0;
  if (getentropy(&number, sizeof number) == 0) return number;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)now.tv_nsec * 2654435761U ^ (uint32_t)getpid();
}
