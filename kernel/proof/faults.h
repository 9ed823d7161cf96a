/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The faults of the classes that have a file of their own, and the sizes that all of them use. */
#ifndef PROOF_FAULTS_H
#define PROOF_FAULTS_H

#include "scene.h"

#define NOWHERE		0x500000000000UL
#define MANAGED		0x300000000UL
#define SIZE		(4 * PROOF_MIB)
#define BIG_PAGE	0x10000UL
#define STRIDE		(2 * PROOF_MIB)
#define FATAL_COUNT	20
#define WAIT_MS		30000

/* What the client looked at is as it has to be, or not. */
static inline void found(const struct client *client, struct scene *scene, bool right)
{
	atomic_fetch_add(&scene->part[client->number - 1].as_it_should, right);
}

fault_function managed_permission_cpu;
fault_function managed_permission_gpu;
fault_function managed_policy_cpu;
fault_function managed_policy_gpu;
fault_function managed_policy_doubled;
fault_function out_of_memory;
fault_function mapped_meanwhile;
fault_function only_reported;

fault_function main_thread_ended;
fault_function main_thread_ended_in_order;
fault_function some_stores;
fault_function wide_storm;
fault_function few_wide_stores;
fault_function endless_storm;
fault_function external_storm;
fault_function useless_sink;
fault_function useless_external_sink;
fault_function mode_turned_off;
fault_function range_over_sink;
fault_function range_beside_sink;
fault_function storm_beside_memory;
fault_function fatal_type;
fault_function beside_semaphore_pool;
fault_function child_maps;
fault_function killed_too_early;
fault_function die_one_after_another;
fault_function storm_around_freed;
fault_function bound_lowered;
fault_function bound_lowered_around_freed;
fault_function cannot_be_helped_further;
fault_function second_thread_maps;
fault_function two_engines_fault;

/* What processes do with descriptors, programs and sleep while their kernels run. */
fault_function executed;
fault_function closed;
fault_function another_program;
fault_function killed_asleep;
/* Before it opens anything: who it is is noted then. The groups below: one of which root names the parent, and another. */
void enter_named_cgroup(void);
void enter_other_cgroup(void);
void name_as_mps_server(void);
/* Once it has opened all. */
void fill_video_memory(struct client *client);

#endif
