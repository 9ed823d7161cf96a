// SPDX-License-Identifier: Apache-2.0
// Can memory that an instance has imported be exported again? Four processes hand one block on, each by its
// address alone. And what a block costs that nobody exports, and an export.
//
//     nvcc -x c tests/hardware/export.cu -o export -lcuda && ./export
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 4, BLOCKS = 2000, EXPORTS = 500 };
static const size_t block_bytes = (size_t)2 << 20;
static const CUdeviceptr window = 0x200000000000;
static int self;

static void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  fprintf(stderr, "process %d: %s: %s\n", self, call, name);
  _exit(1);
}
#define CHECK(call) check(call, #call)

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void send_descriptor(int socket, int fd) {
  char byte = 0;
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  sendmsg(socket, &message, 0);
}

static int receive_descriptor(int socket) {
  char byte;
  char control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  int fd = -1;
  if (recvmsg(socket, &message, 0) <= 0 || CMSG_FIRSTHDR(&message) == NULL)
    _exit(0);  // nobody has handed it on
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

static void map(CUdeviceptr address, CUmemGenericAllocationHandle handle) {
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemMap(address, block_bytes, 0, handle, 0));
  CHECK(cuMemSetAccess(address, block_bytes, &access, 1));
  CHECK(cuMemRelease(handle));
}

static CUresult export_from(CUdeviceptr address, int* fd) {
  CUmemGenericAllocationHandle handle = 0;
  CHECK(cuMemRetainAllocationHandle(&handle, (void*)(uintptr_t)address));
  const CUresult result =
      cuMemExportToShareableHandle(fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  CHECK(cuMemRelease(handle));
  return result;
}

static void time_blocks(const CUmemAllocationProp* wanted) {
  CUmemGenericAllocationHandle handle = 0;
  double begin = now_us();
  for (int i = 1; i <= BLOCKS; ++i) {
    CHECK(cuMemCreate(&handle, block_bytes, wanted, 0));
    map(window + i * block_bytes, handle);
  }
  printf("a block that nobody exports: %.1f us, mean of %d\n", (now_us() - begin) / BLOCKS, BLOCKS);
  begin = now_us();
  for (int i = 1; i <= EXPORTS; ++i) {
    int fd = -1;
    CHECK(export_from(window + i * block_bytes, &fd));
    close(fd);
  }
  printf("an export: %.1f us, mean of %d\n", (now_us() - begin) / EXPORTS, EXPORTS);
}

static int play(int from, int to) {
  CUcontext context = NULL;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CUdeviceptr reserved = 0;
  CHECK(cuMemAddressReserve(&reserved, (size_t)1 << 36, block_bytes, window, 0));
  CUmemAllocationProp wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  if (self == 0) {
    CHECK(cuMemCreate(&handle, block_bytes, &wanted, 0));
  } else {
    const int fd = receive_descriptor(from);
    const double begin = now_us();
    CHECK(cuMemImportFromShareableHandle(&handle, (void*)(intptr_t)fd,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    printf("process %d imports it in %.1f us\n", self, now_us() - begin);
    close(fd);
  }
  map(window, handle);
  if (self + 1 < PROCESSES) {
    int fd = -1;
    const CUresult result = export_from(window, &fd);
    const char* name = "?";
    cuGetErrorName(result, &name);
    printf("process %d exports it: %s\n", self, name);
    if (result != CUDA_SUCCESS) return 0;
    send_descriptor(to, fd);
    close(fd);
  }
  if (self == 0) time_blocks(&wanted);
  return 0;
}

int main(void) {
  int sockets[PROCESSES][2];
  pid_t children[PROCESSES];
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 0; i < PROCESSES; ++i) socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]);
  for (self = 0; self < PROCESSES; ++self) {
    children[self] = fork();
    if (children[self] != 0) continue;
    for (int i = 0; i < PROCESSES; ++i) {  // an end that nobody has is the end of the play for the next
      if (i != self) close(sockets[i][0]);
      if (i != self - 1) close(sockets[i][1]);
    }
    return play(self == 0 ? -1 : sockets[self - 1][1], sockets[self][0]);
  }
  for (int i = 0; i < PROCESSES; ++i) {
    close(sockets[i][0]);
    close(sockets[i][1]);
  }
  int all = 0;
  for (int i = 0; i < PROCESSES; ++i) {
    int status = 0;
    waitpid(children[i], &status, 0);
    all |= status;
  }
  return all != 0;
}
