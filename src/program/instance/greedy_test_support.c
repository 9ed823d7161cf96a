// SPDX-License-Identifier: Apache-2.0
/// A library that takes from its process what a driver takes, from its constructor on, and gives nothing
/// back. What runs of it where nothing may run any more ends the process.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

extern char** environ;

static pthread_key_t key;
static int ended_values;
static sem_t never;
static void* kept;

static void must_not_run(void) { abort(); }
static void end_value(void* value) {
  if (value != &ended_values) abort();
  ended_values++;
}

__attribute__((constructor)) static void construct(void) {
  kept = malloc(1000);
  memset(kept, 1, 1000);
  atexit(&must_not_run);
  if (pthread_key_create(&key, &end_value) != 0) abort();
}
__attribute__((destructor)) static void destruct(void) { abort(); }

static void* wait_for_events(void* unused) {
  int both[2];
  if (pipe(both) != 0) abort();
  struct pollfd looked_at = {both[0], POLLIN, 0};
  while (1) poll(&looked_at, 1, -1);
  return unused;
}
static void* wait_for_word(void* unused) {
  while (1) sem_wait(&never);
  return unused;
}
static void* take_and_give(void* unused) {
  FILE* out = fopen("/dev/null", "w");
  while (1) {
    char* text = malloc(64);
    snprintf(text, 64, "%p", (void*)text);
    fprintf(out, "%s\n", text);
    free(text);
  }
  return unused;
}
static void* wait_without_signals(void* unused) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  while (1) pause();
  return unused;
}

/// The two threads leave a condition with a waiter whose mutex is somebody else's for good: the C library's
/// own way out of pthread_cond_wait() takes that mutex again.
static pthread_mutex_t guarded = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static int has_waiter;
static void* wait_for_condition(void* unused) {
  pthread_mutex_lock(&guarded);
  has_waiter = 1;
  while (1) pthread_cond_wait(&told, &guarded);
  return unused;
}
static void* keep_mutex(void* unused) {
  pthread_mutex_lock(&guarded);
  while (!has_waiter) {
    pthread_mutex_unlock(&guarded);
    usleep(100);
    pthread_mutex_lock(&guarded);
  }
  while (1) pause();
  return unused;
}

/// How many threads that started.
int greedy_begin(void) {
  sem_init(&never, 0, 0);
  int both[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0 || eventfd(0, 0) < 0 || dup(0) < 0) abort();
  int memory = memfd_create("greedy", 0);
  if (memory < 0 || ftruncate(memory, 1 << 20) != 0) abort();
  if (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) == MAP_FAILED) abort();
  char* anonymous = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (anonymous == MAP_FAILED) abort();
  memset(anonymous, 1, 4 << 20);
  munmap(anonymous + (1 << 20), 1 << 20);  // the hole is in the middle
  void* (*const all[])(void*) = {&wait_for_events,      &wait_for_word,      &take_and_give,
                                 &wait_without_signals, &wait_for_condition, &keep_mutex};
  int started = 0;
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
    pthread_t thread;
    started += pthread_create(&thread, NULL, all[i], NULL) == 0;
    if (i % 2 == 0) pthread_detach(thread);
  }
  return started;
}

void greedy_set_value(void) { pthread_setspecific(key, &ended_values); }
int greedy_ended_values(void) { return ended_values; }
const char* greedy_variable(const char* name) { return getenv(name); }
/// Opens as a library that looks for newer functions than it was built with.
int greedy_open_event(void) {
  int (*make)(unsigned int, int) = NULL;
  *(void**)&make = dlvsym(RTLD_DEFAULT, "eventfd", "GLIBC_2.7");
  return make == NULL ? -1 : make(0, 0);
}
const char* greedy_first_of_environ(void) { return environ[0]; }
void greedy_say(const char* text) { fwrite(text, 1, strlen(text), stderr); }
void* greedy_load(const char* path) { return dlopen(path, RTLD_NOW); }
int greedy_open(const char* path) { return open(path, O_RDONLY); }

static void (*called_back)(void);
static void* call_back(void* unused) {
  called_back();
  while (1) pause();
  return unused;
}
/// Calls back on a thread of its own.
void greedy_call_back(void (*function)(void)) {
  pthread_t thread;
  called_back = function;
  pthread_create(&thread, NULL, &call_back, NULL);
}
