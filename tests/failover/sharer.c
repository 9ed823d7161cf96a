/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant in C that shares memory, or maps what another shares. It does what its arguments say, and says
 * what each came to:
 *   make NAME BYTES, share, map OWNER NAME TIMEOUT_MS, write VALUE, read, ready, promoted, commit, leave;
 *   and wait, for a line on its standard input. */
#include <dlfcn.h>
#include <firebreak/firebreak.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*cuInit)(unsigned), (*cuCtxCreate)(void** context, unsigned flags, int device);
static int (*cuMemsetD32)(uint64_t to, unsigned value, size_t count);
static int (*cuMemcpyDtoH)(void* to, uint64_t from, size_t bytes);
static int (*cuCtxSynchronize)(void);

static fb_session* session;
static uint64_t address;

static void say(const char* what, fb_status status) {
  printf("%s %s %" PRIx64 "%s%s\n", what, fb_status_name(status), address, status == FB_OK ? "" : ": ",
         status == FB_OK ? "" : fb_last_error(session));
}

static void open_cuda(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
  if (cuda == NULL) exit(2);
  *(void**)&cuInit = dlsym(cuda, "cuInit");
  *(void**)&cuCtxCreate = dlsym(cuda, "cuCtxCreate_v2");
  *(void**)&cuMemsetD32 = dlsym(cuda, "cuMemsetD32_v2");
  *(void**)&cuMemcpyDtoH = dlsym(cuda, "cuMemcpyDtoH_v2");
  *(void**)&cuCtxSynchronize = dlsym(cuda, "cuCtxSynchronize");
  if (cuInit(0) || cuCtxCreate(&context, 0, 0)) exit(2);
}

int main(int count, char** arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  open_cuda();
  fb_status joined = fb_join(NULL, &session);
  if (joined != FB_OK) {
    say("join", joined);
    return 3;
  }
  for (int at = 1; at < count; at++) {
    char** word = &arguments[at];
    char line[16];
    fb_resume resume;
    unsigned value = 0;
    if (!strcmp(*word, "make") && at + 2 < count) {
      say("make", fb_alloc_as(session, word[1], strtoull(word[2], NULL, 0), FB_MEMORY_SHARED, -1, &address));
      at += 2;
    } else if (!strcmp(*word, "map") && at + 3 < count) {
      say("map", fb_map_shared(session, word[1], word[2], atoll(word[3]), &address));
      at += 3;
    } else if (!strcmp(*word, "share")) {
      say("share", fb_share(session));
    } else if (!strcmp(*word, "write") && at + 1 < count) {
      printf("write %d\n",
             cuMemsetD32(address, (unsigned)strtoul(word[1], NULL, 0), 1) || cuCtxSynchronize());
      at += 1;
    } else if (!strcmp(*word, "read")) {
      const int failed = cuMemcpyDtoH(&value, address, sizeof value);
      printf("read %d %u\n", failed, value);
    } else if (!strcmp(*word, "ready")) {
      say("ready", fb_ready(session));
    } else if (!strcmp(*word, "promoted")) {
      say("promoted", fb_wait_promotion(session, -1, &resume));
    } else if (!strcmp(*word, "commit")) {
      say("commit", fb_commit(session, NULL, 0, "x", 1));
    } else if (!strcmp(*word, "leave")) {
      return fb_leave(session);
    } else if (!strcmp(*word, "wait")) {
      printf("waits\n");
      if (fgets(line, sizeof line, stdin) == NULL) return 4;
    } else {
      return 5;
    }
  }
  return 0;
}
