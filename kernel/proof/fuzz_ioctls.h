/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef PROOF_FUZZ_IOCTLS_H
#define PROOF_FUZZ_IOCTLS_H

#include <stdbool.h>
#include <stdint.h>
#include "client.h"

/* One request to UVM's descriptors of this client, mostly sensible, at times not at all. All of it comes from state. */
void fuzz_ioctl(struct client *client, int tools, bool may_unregister, uint64_t *state);
/* An address that means something to this client, or is near one that does. */
uint64_t fuzz_address(uint64_t *state);

#endif
