// SPDX-License-Identifier: GPL-2.0 OR MIT
/* One function a class: how its fault is made. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "faults.h"

#define EXTERNAL	0x400000000UL
#define STORM_COUNT	10000
#define DUPLICATE_COUNT	6
#define UVM_MAPPING_READ_WRITE	2
#define UVM_MAPPING_READ_ONLY	3
#define UVM_MAPPING_ATOMIC	1

static uint32_t no_range_store(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
}

static uint32_t no_range_load(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_LOAD, NOWHERE, STRIDE, FATAL_COUNT);
}

static uint32_t no_range_atomic(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_ATOMIC_ADD, NOWHERE, STRIDE, FATAL_COUNT);
}

static uint32_t external_hole(struct client *client, struct scene *scene)
{
	external_range(client, EXTERNAL, 8 * PROOF_MIB);
	external_map(client, EXTERNAL, STRIDE, 11, UVM_MAPPING_ATOMIC);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, EXTERNAL + STRIDE, BIG_PAGE, FATAL_COUNT);
}

/* The range begins in the midst of 64 KiB, which cannot be made sparse for it. */
static uint32_t external_edge(struct client *client, struct scene *scene)
{
	external_range(client, EXTERNAL + BIG_PAGE / 2, SIZE);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, EXTERNAL + BIG_PAGE / 2, STRIDE, 1);
}

static uint32_t external_read_only(struct client *client, struct scene *scene)
{
	external_range(client, EXTERNAL, STRIDE);
	external_map(client, EXTERNAL, STRIDE, 12, UVM_MAPPING_READ_ONLY);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, EXTERNAL, BIG_PAGE, FATAL_COUNT);
}

/* All of the mapping goes with the first sink, so RM has something to free. */
static uint32_t external_whole(struct client *client, struct scene *scene)
{
	external_range(client, EXTERNAL, STRIDE);
	external_map(client, EXTERNAL, BIG_PAGE, 14, UVM_MAPPING_READ_ONLY);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, EXTERNAL, BIG_PAGE, 1);
}

static uint32_t external_atomic(struct client *client, struct scene *scene)
{
	external_range(client, EXTERNAL, STRIDE);
	external_map(client, EXTERNAL, STRIDE, 13, UVM_MAPPING_READ_WRITE);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_ATOMIC_ADD, EXTERNAL, BIG_PAGE, FATAL_COUNT);
}

/* The client uses both GPUs and faults on the second; its neighbours there and on the first are others. */
static uint32_t second_gpu(struct client *client, struct scene *scene)
{
	struct client there = *client;

	client_add_gpu(client, 1);
	there.gpu = 1;
	return no_range_store(&there, scene);
}

static uint32_t copy_engine(struct client *client, struct scene *scene)
{
	char *memory = managed_map(client, MANAGED, SIZE);
	struct gpu_model_access copy = { NOWHERE, (uintptr_t)memory, GPU_MODEL_COPY, 4096 };

	memory[0] = 1;
	return launch(client, PROOF_CHANNEL_COPY, 1, &copy, 1, 1);
}

/* The channel that was cleared faults once more, elsewhere. */
static uint32_t copy_engine_twice(struct client *client, struct scene *scene)
{
	char *memory = managed_map(client, MANAGED, SIZE);
	struct gpu_model_access copies[] = {
		{ NOWHERE, (uintptr_t)memory, GPU_MODEL_COPY, 4096 },
		{ NOWHERE + 64 * STRIDE, (uintptr_t)memory, GPU_MODEL_COPY, 4096 },
	};

	memory[0] = 1;
	return launch(client, PROOF_CHANNEL_COPY, 1, copies, 2, 1);
}

/* While the first fault is being dealt with the channel's other engine faults too, and the copy waits for both. */
uint32_t two_engines_fault(struct client *client, struct scene *scene)
{
	struct gpu_model_access copy = { NOWHERE, MANAGED, GPU_MODEL_COPY, 4096 };
	uint32_t program;

	migrate(client, managed_map(client, MANAGED, SIZE), SIZE, true);
	model_set("host_faults_too", client->number);
	program = launch(client, PROOF_CHANNEL_COPY, 1, &copy, 1, 1);
	found(client, scene, wait_for(client, program, WAIT_MS, NULL, 0).state == GPU_MODEL_DONE);
	_exit(0);
}

static uint32_t pbdma(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_HOST, GPU_MODEL_RELEASE, NOWHERE, STRIDE, 1);
}

/* The parent kills the process meanwhile. On a busy machine too this outlives the kill and ends within the grace time. */
static uint32_t killed(struct client *client, struct scene *scene)
{
	char *memory = managed_map(client, MANAGED, SIZE);
	struct gpu_model_access accesses[64];
	uint32_t i;

	memset(memory, 0, SIZE);
	for (i = 0; i < 64; i++)
		accesses[i] = (struct gpu_model_access){ (uintptr_t)memory + i * 4096, i, GPU_MODEL_STORE, 8 };
	return launch(client, PROOF_CHANNEL_SM, 4, accesses, 64, 4000);
}

/* A child that does nothing keeps copies of the descriptors: to the scene's end, or to soon after its parent's. */
static void share_with_child(struct scene *scene, bool to_the_end)
{
	pid_t parent = getpid();

	if (fork() != 0)
		return;
	while (!atomic_load(&scene->stop) && (to_the_end || getppid() == parent))
		usleep(10000);
	_exit(0);
}

static uint32_t forked(struct client *client, struct scene *scene)
{
	share_with_child(scene, true);
	return no_range_store(client, scene);
}

/*
 * The child's descriptors outlive the process, its mappings do not: what is left of its ranges is good for nothing. It goes
 * soon after, while the neighbours still work, and the VA space with it.
 */
static uint32_t killed_with_child(struct client *client, struct scene *scene)
{
	share_with_child(scene, false);
	return killed(client, scene);
}

/* The CPU takes the memory away under a program that walks over it. */
static uint32_t munmapped(struct client *client, struct scene *scene)
{
	char *memory = managed_map(client, MANAGED, SIZE);
	struct gpu_model_access accesses[256];
	uint32_t program, i;

	memset(memory, 0, SIZE);
	for (i = 0; i < 256; i++)
		accesses[i] = (struct gpu_model_access){ (uintptr_t)memory + i * 16384, i, GPU_MODEL_STORE, 8 };
	program = launch(client, PROOF_CHANNEL_SM, 4, accesses, 256, 20);
	usleep(1000 + scene->seed % 7 * 1000);
	munmap(memory, SIZE);
	return program;
}

static uint32_t storm(struct client *client, struct scene *scene)
{
	struct gpu_model_access *accesses = calloc(STORM_COUNT, sizeof(*accesses));
	uint32_t program, i;

	for (i = 0; i < STORM_COUNT; i++)
		accesses[i] = (struct gpu_model_access){ NOWHERE + i * 4096UL * 5, i, GPU_MODEL_STORE, 8 };
	program = launch(client, PROOF_CHANNEL_SM, 8, accesses, STORM_COUNT, 1);
	free(accesses);
	return program;
}

/* The process ends in the moment after the launch. */
static uint32_t torn_down(struct client *client, struct scene *scene)
{
	several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
	usleep(scene->seed % 5 * 300);
	_exit(0);
}

/*
 * Faults of its were written twice and serviced; it leaves in good order before UVM reads the second ones. One alone might be
 * written while UVM services others, and be flushed unread with what came meanwhile.
 */
static uint32_t left_duplicates(struct client *client, struct scene *scene)
{
	client_leave(client);
	model_duplicate(client, DUPLICATE_COUNT);
	_exit(0);
}

const struct fault_class fault_classes[] = {
	{ "no range, store", no_range_store, 1, .ratio_at_most = 0.6 },
	{ "no range, load", no_range_load, 1, .ratio_at_most = 0.6 },
	{ "no range, atomic", no_range_atomic, 1, .ratio_at_most = 0.6 },
	{ "external range, hole", external_hole, 1, .ratio_at_most = 3 },
	{ "external range, store to read-only", external_read_only, 1, .ratio_at_most = 3 },
	{ "external range, atomic", external_atomic, 1, .ratio_at_most = 3 },
	{ "managed, permission, on the CPU", managed_permission_cpu, 1, .ratio_at_most = 3 },
	{ "managed, permission, on the GPU", managed_permission_gpu, 1, .ratio_at_most = 3, .contained_at_most = 10 },
	{ "managed, policy keeps it on the CPU", managed_policy_cpu, 1, .ratio_at_most = 3, .contained_at_most = 10 },
	{ "managed, policy keeps it on the GPU", managed_policy_gpu, 1, .ratio_at_most = 3, .contained_at_most = 10 },
	{ "managed, policy doubles it", managed_policy_doubled, 1, .ratio_at_most = 3, .contained_at_most = 10 },
	{ "out of memory during service", out_of_memory, 1, .ratio_at_most = 3 },
	{ "out of memory, neighbours' CPUs take pages back", out_of_memory, 1, .cpu_reads = true, .test_delay_ms = 60 },
	{ "out of memory, clients without an mm", out_of_memory, 1, .cpu_reads = true, .test_delay_ms = 20, .without_mm = true,
	  .as_ever = true },
	{ "copy engine", copy_engine, 1, .ratio_at_most = 3 },
	{ "copy engine, two faults", copy_engine_twice, 1, .contained_at_least = 2, .kill_delay_ms = 10000 },
	{ "PBDMA semaphore", pbdma, 1, .ratio_at_most = 3 },
	{ "killed while its program runs", killed, 1, .kill = true },
	{ "a forked child holds its descriptors", forked, 1 },
	{ "killed, a forked child holds its descriptors", killed_with_child, 1, .kill = true },
	{ "munmap against fault", munmapped, 1 },
	{ "two clients fault at once", no_range_store, 2, .listed = 2 },
	{ "storm over 10,000 addresses", storm, 1 },
	{ "fault while tearing down", torn_down, 1 },
	{ "duplicate of a client that has left", left_duplicates, 1 },
	{ "suspend and resume", no_range_store, 1, .suspend = true },
	{ "suspend and resume, external range", external_whole, 1, .suspend = true, .asleep_ms = 2500,
	  .test_delay_ms = 1000, .kill_delay_ms = 10000 },
	{ "two GPUs, a fault on the second", second_gpu, 1, .two_gpus = true },
	{ "its main thread has ended, another lives", main_thread_ended, 1 },
	{ "its main thread has ended, another leaves", main_thread_ended_in_order, 1, .no_fault = true, .no_grace = true },
	{ "calls itself an MPS server", some_stores, 1, .prepare = name_as_mps_server, .contained_at_least = 1 },
	{ "storm, 1,200 addresses 4 GiB apart", wide_storm, 1, .to_the_end = true, .grace_ms = 5000, .table_kib_at_most = 32768,
	  .contained_at_most = 100 },
	{ "storm, a million addresses over 47 bits", endless_storm, 1, .to_the_end = true, .kill_delay_ms = 60000,
	  .table_kib_at_most = 32768 },
	{ "storm, page tables for few sinks", few_wide_stores, 1, .to_the_end = true, .grace_ms = 10000, .max_table_kib = 64,
	  .table_kib_at_most = 64, .kill_delay_ms = 60000 },
	{ "storm in an external range of 64 GiB", external_storm, 1, .to_the_end = true, .kill_delay_ms = 60000,
	  .contained_at_least = 40 },
	{ "a sink that does not help", useless_sink, 1, .to_the_end = true, .max_repeats = 4, .grace_ms = 10000,
	  .kill_delay_ms = 60000 },
	{ "a sink that does not help, external range", useless_external_sink, 1, .to_the_end = true, .max_repeats = 4,
	  .grace_ms = 10000, .kill_delay_ms = 60000 },
	{ "killed, alone in its group", killed, 1, .kill = true, .alone = true, .no_fault = true, .no_grace = true },
	{ "killed, its program outlives the grace time", killed_too_early, 1, .kill = true, .short_grace_ms = 100,
	  .counts = "fault gone unsupported", .as_ever = true },
	{ "killed too early, a slow bottom half", killed_too_early, 1, .kill = true, .short_grace_ms = 100, .test_delay_ms = 20,
	  .counts = "fault gone unsupported", .as_ever = true },
	{ "processes of one user die one after another", die_one_after_another, 1, .kill = true, .no_fault = true, .deaths = 6,
	  .max_graces = 2, .looks = 4, .counts = "graces_cut" },
	{ "the mode is turned off", mode_turned_off, 1, .mode_off = true },
	{ "killed, clients without an mm", killed, 1, .kill = true, .without_mm = true },
	{ "a new range over a sink", range_over_sink, 1, .looks = 1, .kill_delay_ms = 10000 },
	{ "a new range beside a storm's sinks", range_beside_sink, 1, .looks = 1, .kill_delay_ms = 10000 },
	{ "a storm beside memory in use", storm_beside_memory, 1, .looks = 1, .kill_delay_ms = 10000 },
	{ "a fault that no entry cures", fatal_type, 1, .counts = "fault no_range unsupported", .as_ever = true },
	{ "no sink can be made", some_stores, 1, .test_fails = true, .counts = "fault no_range failed", .as_ever = true,
	  .gives_up = true, .says = "Fault isolation makes no more sinks for process" },
	{ "external range, less than 64 KiB of it", external_edge, 1, .counts = "fault external unsupported",
	  .as_ever = true },
	{ "mode 1, less than 64 KiB of an external range", external_edge, 1, .report = true,
	  .counts = "fault external unsupported", .as_ever = true },
	{ "beside a semaphore pool", beside_semaphore_pool, 1, .counts = "fault no_range unsupported", .as_ever = true },
	{ "another process maps, clients without an mm", child_maps, 1, .without_mm = true, .counts = "fault no_range doubt",
	  .as_ever = true },
	{ "alone in its group", some_stores, 1, .alone = true, .counts = "fault no_range alone" },
	{ "mode 1", some_stores, 1, .report = true, .counts = "fault no_range reported", .foresees = "foreseen condemned",
	  .as_ever = true },
	{ "opt-in, in a group below a named one", some_stores, 1, .opt_in = true, .prepare = enter_named_cgroup,
	  .contained_at_least = 1 },
	{ "opt-in, in another group", some_stores, 1, .opt_in = true, .prepare = enter_other_cgroup,
	  .counts = "fault no_range unsupported", .as_ever = true },
	{ "opt-in, killed, in another group", killed, 1, .kill = true, .opt_in = true, .prepare = enter_other_cgroup,
	  .as_ever = true },
	{ "a GPU that fails its self-test", some_stores, 1, .self_test_fails = true, .counts = "fault no_range unsupported",
	  .as_ever = true, .says = "Fault isolation contains nothing on GPU" },
	{ "a storm around memory that is freed", storm_around_freed, 1, .to_the_end = true, .kill_delay_ms = 60000 },
	{ "a bound that is lowered", bound_lowered, 1, .to_the_end = true, .grace_ms = 10000, .kill_delay_ms = 60000,
	  .max_table_kib = 32768 },
	{ "a bound that is lowered, sinks to take in", bound_lowered_around_freed, 1, .to_the_end = true, .grace_ms = 10000,
	  .kill_delay_ms = 60000, .max_table_kib = 32768 },
	{ "mode 1, beside a semaphore pool", beside_semaphore_pool, 1, .report = true,
	  .counts = "fault no_range unsupported", .as_ever = true },
	{ "an MPS server that root has named", some_stores, 1, .server = true, .as_ever = true },
	{ "no sink can be made, its entries are written", some_stores, 1, .test_fails = 2, .counts = "fault no_range failed",
	  .as_ever = true, .gives_up = true, .says = "Fault isolation makes no more sinks for process" },
	{ "mode 1, out of memory during service", out_of_memory, 1, .report = true, .innocents_last = true,
	  .counts = "fault managed reported", .foresees = "foreseen fault managed contained", .as_ever = true },
	{ "mode 1, duplicate of a client that has left", left_duplicates, 1, .report = true, .counts = "fault gone reported",
	  .foresees = "foreseen fault gone spared", .as_ever = true },
	{ "mode 1, killed while its program runs", killed, 1, .kill = true, .report = true,
	  .foresees = "foreseen fault termination deferred", .as_ever = true },
	{ "a fault whose page is mapped while the batch fails", mapped_meanwhile, 2, .looks = 7, .test_delay_ms = 10,
	  .kill_delay_ms = 60000, .counts = "fault no_range spared" },
	{ "mode 1, nothing is done", only_reported, 1, .report = true, .looks = 11, .kill_delay_ms = 100,
	  .foresees = "foreseen condemned", .as_ever = true },
	{ "execve in mid-kernel", executed, 1 },
	{ "closes its descriptors in mid-kernel", closed, 1 },
	{ "another program in a condemned client's process", another_program, 1, .looks = 1, .counts = "not_killed" },
	{ "condemned, no sink for its next fault", cannot_be_helped_further, 1, .kill_delay_ms = 60000,
	  .counts = "fault no_range held" },
	{ "a second thread maps", second_thread_maps, 1, .contained_at_least = 1 },
	{ "copy engine, its channel's host faults too", two_engines_fault, 1, .looks = 1, .kill_delay_ms = 60000 },
	{ "a channel that cannot be cleared", copy_engine, 1, .test_fails = 3, .counts = "fault no_range contained", .as_ever = true },
	{ "video memory is full", few_wide_stores, 1, .opened = fill_video_memory, .contained_at_least = 1 },
	{ "killed while the machine sleeps", killed_asleep, 1, .kill = true, .dies_asleep = true },
	{ "killed while the machine sleeps, without an mm", killed_asleep, 1, .kill = true, .dies_asleep = true, .without_mm = true },
};
const unsigned int fault_class_count = sizeof(fault_classes) / sizeof(fault_classes[0]);
