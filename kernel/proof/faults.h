/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The faults of the classes, and what making them takes. */
#ifndef PROOF_FAULTS_H
#define PROOF_FAULTS_H

#include "scene.h"

#define MANAGED		0x300000000UL
#define SIZE		(4 * PROOF_MIB)
#define BIG_PAGE	0x10000UL
#define STRIDE		(2 * PROOF_MIB)
#define FATAL_COUNT	20
#define WAIT_MS		30000

/* One lane does op at first, first + stride, ... The program, or 0 where the channel takes no more. */
uint32_t several(struct client *client, uint32_t channel, uint32_t op, uint64_t first, uint64_t stride, uint32_t count);

fault_function managed_permission_cpu;
fault_function managed_permission_gpu;
fault_function managed_policy_cpu;
fault_function managed_policy_gpu;
fault_function managed_policy_doubled;
fault_function out_of_memory;

#endif
