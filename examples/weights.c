/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of GPU memory for several tenants. How to run it: examples/README.md */
#include <dlfcn.h>
#include <firebreak/firebreak.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { weights = 1 << 20 };
static int (*cuInit)(unsigned), (*cuCtxCreate)(void** context, unsigned flags, int device);
static int (*cuMemcpyHtoD)(uint64_t to, const void* from, size_t bytes);
static int (*cuMemcpyDtoH)(void* to, uint64_t from, size_t bytes);
static uint32_t on_host[weights];

static void check(int failed, const char* what, const fb_session* session) {
  if (!failed) return;
  fprintf(stderr, "%s: %d %s\n", what, failed, fb_last_error(session));
  exit(1);
}

static void open_cuda(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
  check(cuda == NULL, "libcuda.so.1", NULL);
  *(void**)&cuInit = dlsym(cuda, "cuInit");
  *(void**)&cuCtxCreate = dlsym(cuda, "cuCtxCreate_v2");
  *(void**)&cuMemcpyHtoD = dlsym(cuda, "cuMemcpyHtoD_v2");
  *(void**)&cuMemcpyDtoH = dlsym(cuda, "cuMemcpyDtoH_v2");
  check(cuInit(0) || cuCtxCreate(&context, 0, 0), "CUDA", NULL);
}

/* The maker loads the weights once, shares them, and may end: they stay while anybody reads them. */
static void make(fb_session* session) {
  uint64_t on_gpu;
  check(fb_alloc_as(session, "weights", sizeof on_host, FB_MEMORY_SHARED, -1, &on_gpu), "fb_alloc_as",
        session);
  for (uint32_t i = 0; i < weights; i++) on_host[i] = i * 2654435761u; /* in the place of a file */
  check(cuMemcpyHtoD(on_gpu, on_host, sizeof on_host), "cuMemcpyHtoD", NULL);
  check(fb_share(session), "fb_share", session);
}

/* A reader waits for them, and computes with them where they are: at the same address as everybody. */
static void read_of(fb_session* session, const char* maker) {
  uint64_t on_gpu;
  uint32_t sum = 0;
  check(fb_map_shared(session, maker, "weights", -1, &on_gpu), "fb_map_shared", session);
  check(cuMemcpyDtoH(on_host, on_gpu, sizeof on_host), "cuMemcpyDtoH", NULL);
  for (uint32_t i = 0; i < weights; i++) sum += on_host[i];
  printf("the weights of %s at %llx add up to %u\n", maker, (unsigned long long)on_gpu, sum);
}

int main(int count, char** arguments) { /* weights [MAKER] */
  fb_session* session;
  open_cuda();
  check(fb_join(NULL, &session), "fb_join", NULL);
  count > 1 ? read_of(session, arguments[1]) : make(session);
  return fb_leave(session);
}
