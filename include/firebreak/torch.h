/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfirebreak-torch: PyTorch's memory in the vault, where it outlives the process. A library apart from
 * libfirebreak, since torch.cuda.memory.CUDAPluggableAllocator calls functions that are given no session: the
 * one that they use is the process's, and libfirebreak itself has nothing of that kind.
 *
 * Each allocation is one fb_alloc_as under a name that says which it is: "torch.weights.N.BYTES" or
 * "torch.state.N.BYTES", N counting from 0 in each process. Who asks for the same sizes in the same order as
 * the active did therefore gets the same memory at the same addresses; who asks for others is told by a name
 * that does not come, and has no memory. What was freed is given out again where the size is the same, the
 * lowest address first; it goes back to the GPU with the tenant's other memory.
 *
 * Threads: any, but a session's calls are for one at a time (firebreak.h): nobody else uses the session while
 * PyTorch allocates.
 */
#ifndef FIREBREAK_TORCH_H
#define FIREBREAK_TORCH_H

#include <firebreak/firebreak.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on, memory is `session`'s; null: there is none any more, which must come before fb_leave. A
 * standby waits for each allocation of the active's for `timeout_ms` (-1: for ever).
 * FB_ERROR_INVALID_ARGUMENT: another session is attached. */
FB_API fb_status fb_torch_attach(fb_session* session, int64_t timeout_ms);

/* For CUDAPluggableAllocator, in pairs of an allocation and fb_torch_free. Null where it fails: fb_last_error
 * of the session says why. `device` and `stream` do not matter: the memory is of the device whose context is
 * current, and is there when the function returns. */
FB_API void* fb_torch_allocate_weights(size_t size_bytes, int device, void* stream);
FB_API void* fb_torch_allocate_state(size_t size_bytes, int device, void* stream);
FB_API void fb_torch_free(void* address, size_t size_bytes, int device, void* stream);

#ifdef __cplusplus
}
#endif

#endif
