/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef PROOF_H
#define PROOF_H

#include <stdbool.h>
#include <stdint.h>

/* All return 0 where everything was as it has to be. */
int run_conformance(bool quick);
/*
 * patched: what is expected. only: the number of one class, FIRST-LAST, the beginnings of names ('_' for what is no letter
 * and no digit) with '+' between them, or NULL for all; that many times.
 */
int run_classes(bool patched, const char *only, unsigned long times);
/* The patched module's own tests, behind UVM's test ioctl. */
int run_builtin(void);
/* Whether the files in /proc that are root's alone refuse the root of a container. */
int run_permissions(void);
/* Unloads the module while something of it is still under way: in a "grace" time, or "asleep". */
int run_unload(const char *when);
/* Another program in a client's process: says through the descriptor that the module has let it live. */
int run_lives(const char *descriptor, const char *before);
/* Seeds first to first + count - 1, that many times, on a patched module. */
int run_schedules(const char *first, const char *count, const char *times);
/* Seeds first and on for so many seconds, on a patched module. percent: of the allocations that fail, NULL for none. */
int run_fuzz(const char *first, const char *seconds, const char *percent);
/* Whether a model that is wrong on purpose is caught. */
int run_wrong(void);
/* Whether the guest outlives its probes, switched on and off so often. */
int run_probes(unsigned long rounds);

#endif
