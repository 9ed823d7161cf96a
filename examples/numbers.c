/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest tenant: each step writes one number to GPU memory. How to run it: examples/README.md */
#include <dlfcn.h>
#include <firebreak/firebreak.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
enum { steps = 300 };
static int (*cuInit)(unsigned), (*cuCtxCreate)(void** context, unsigned flags, int device);
static int (*cuStreamCreate)(void** stream, unsigned flags), (*cuStreamSynchronize)(void* stream);
static int (*cuMemsetD32Async)(uint64_t to, unsigned value, size_t count, void* stream);
static int (*cuMemcpyDtoH)(void* to, uint64_t from, size_t bytes);

static void check(int failed, const char* what, const fb_session* session) {
  if (!failed) return;
  fprintf(stderr, "%s: %d %s\n", what, failed, fb_last_error(session));
  exit(1);
}

int main(int count, char** arguments) { /* numbers [FILE [PAUSE_MS]] */
  const long pause_ms = count > 2 ? atol(arguments[2]) : 10;
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *stream;
  check(cuda == NULL, "libcuda.so.1", NULL);
  *(void**)&cuInit = dlsym(cuda, "cuInit");
  *(void**)&cuCtxCreate = dlsym(cuda, "cuCtxCreate_v2");
  *(void**)&cuStreamCreate = dlsym(cuda, "cuStreamCreate");
  *(void**)&cuStreamSynchronize = dlsym(cuda, "cuStreamSynchronize");
  *(void**)&cuMemsetD32Async = dlsym(cuda, "cuMemsetD32Async");
  *(void**)&cuMemcpyDtoH = dlsym(cuda, "cuMemcpyDtoH_v2");
  check(cuInit(0) || cuCtxCreate(&context, 0, 0) || cuStreamCreate(&stream, 1), "CUDA", NULL);

  fb_session* session;
  fb_resume from;                      /* an active begins at step 0, or where its tenant was lost */
  uint32_t numbers[steps], number = 1; /* forward state: the next number follows from the last */
  uint64_t on_gpu;
  check(fb_join(NULL, &session), "fb_join", NULL);
  check(fb_alloc(session, "numbers", sizeof numbers, -1, &on_gpu), "fb_alloc", session);
  if (fb_session_role(session) == FB_ROLE_STANDBY) {
    check(fb_ready(session), "fb_ready", session);
  }
  const fb_status promoted = fb_wait_promotion(session, -1, &from); /* at once for an active */
  if (promoted == FB_ERROR_REFUSED) return fb_leave(session);       /* the active has done it all */
  check(promoted, "fb_wait_promotion", session);
  if (from.state != NULL) memcpy(&number, from.state, sizeof number);
  for (uint64_t step = from.next_step; step < steps; step++) {
    number = number * 1664525u + 1013904223u;
    check(cuMemsetD32Async(on_gpu + step * sizeof number, number, 1, stream), "cuMemsetD32Async", NULL);
    const fb_change change = {0, &number, sizeof number};
    check(fb_commit_changes(session, stream, step, &change, 1), "fb_commit_changes", session);
    if (from.epoch > 0 && step == from.next_step)
      check(cuStreamSynchronize(stream) || fb_resumed(session), "fb_resumed", session);
    thrd_sleep(&(struct timespec){pause_ms / 1000, pause_ms % 1000 * 1000000}, NULL);
  }
  check(cuStreamSynchronize(stream) || cuMemcpyDtoH(numbers, on_gpu, sizeof numbers), "numbers", NULL);
  FILE* out = count > 1 ? fopen(arguments[1], "w") : stdout;
  for (int i = 0; out != NULL && i < steps; i++) fprintf(out, "%u\n", numbers[i]);
  check(out == NULL || fclose(out), "output", NULL);
  return fb_leave(session);
}
