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
/* Seeds first to first + count - 1, that many times, on a patched module. */
int run_schedules(const char *first, const char *count, const char *times);
/* Seeds first and on for so many seconds, on a patched module. percent: of the allocations that fail, NULL for none. */
int run_fuzz(const char *first, const char *seconds, const char *percent);
/* Whether a model that is wrong on purpose is caught. */
int run_wrong(void);
/* Whether the guest outlives its probes, switched on and off so often. */
int run_probes(unsigned long rounds);

#endif
