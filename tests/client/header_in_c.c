/* SPDX-License-Identifier: Apache-2.0 */
/* The header alone, in C11: what a C application sees, and the layout that is part of the ABI. */
#include <firebreak/firebreak.h>
#include <firebreak/torch.h>

#define PINNED(what) _Static_assert(what, #what)

PINNED(sizeof(fb_status) == 4 && sizeof(fb_role) == 4);
PINNED(FB_OK == 0 && FB_ERROR_INVALID_ARGUMENT == 1 && FB_ERROR_NO_AGENT == 2 && FB_ERROR_REFUSED == 3);
PINNED(FB_ERROR_FENCED == 4 && FB_ERROR_TIMEOUT == 5 && FB_ERROR_CUDA == 6 && FB_ERROR_NO_MEMORY == 7);
PINNED(FB_ERROR_CORRUPT == 8 && FB_ERROR_CLIENT_GONE == 9);
PINNED(FB_ROLE_ACTIVE == 1 && FB_ROLE_STANDBY == 2);
PINNED(FB_STATE_BYTES_MAX == 16777216);

PINNED(sizeof(fb_join_options) == 32);
PINNED(offsetof(fb_join_options, size_bytes) == 0 && offsetof(fb_join_options, socket_path) == 8);
PINNED(offsetof(fb_join_options, tenant) == 16 && offsetof(fb_join_options, role) == 24);

PINNED(sizeof(fb_resume) == 40);
PINNED(offsetof(fb_resume, epoch) == 0 && offsetof(fb_resume, next_step) == 8 &&
       offsetof(fb_resume, state) == 16);
PINNED(offsetof(fb_resume, state_bytes) == 24 && offsetof(fb_resume, promoted_at_ns) == 32);

PINNED(sizeof(fb_change) == 24);
PINNED(offsetof(fb_change, offset) == 0 && offsetof(fb_change, bytes) == 8 &&
       offsetof(fb_change, size_bytes) == 16);

PINNED(sizeof(fb_connection) == 16);
PINNED(offsetof(fb_connection, id) == 0 && offsetof(fb_connection, descriptor) == 8);

const char* status_name_seen_from_c(fb_status status);
const char* status_name_seen_from_c(fb_status status) { return fb_status_name(status); }
