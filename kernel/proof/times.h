/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* How long things took, and how much work they were. */
#ifndef PROOF_TIMES_H
#define PROOF_TIMES_H

#include <stdbool.h>
#include <stdint.h>

struct spread {
	uint64_t count;
	uint64_t p50;
	uint64_t p99;
	uint64_t largest;
};

/* Sorts them. */
struct spread spread_of(uint64_t *values, uint64_t count);

/*
 * What the driver did under a GPU's service lock, told by the kernel's own tracing: probes where the driver begins and ends
 * to service replayable faults, where it hands a push to the GPU, where isolation begins, and isolation's tracepoint.
 */
struct lock_times {
	struct spread benign_us;	/* of one hold of the lock in which nothing was contained, but something serviced */
	struct spread fatal_us;		/* of one hold in which something was contained or held */
	struct spread sink_us;		/* of the decision and the sink of one fault, as the module says */
	struct spread under_lock_us;	/* the same, of what was done in a hold of the lock alone */
	uint64_t holds;		/* of the lock in which isolation looked at something */
	bool lost;		/* there was more than the kernel could keep, so these are too few */
	struct spread benign_pushes;	/* in one hold */
	struct spread sink_pushes;	/* for one fault */
};

/* Probes and trace points, while the guest has one processor. The first lock_times_begin() switches them on. */
void lock_times_switch(bool on);

/*
 * Forgets what was traced so far. Where the kernel has no probes nothing is traced, and all counts are 0. Where it has them
 * and the driver lacks a function that they name, the program ends.
 */
void lock_times_begin(void);
struct lock_times lock_times_end(void);

/* Each value of all holds without a contained fault and of all contained faults so far, for a table of several guests. */
void lock_times_print_each(void);

#endif
