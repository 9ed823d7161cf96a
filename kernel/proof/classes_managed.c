// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Fatal faults in managed ranges: permission, with and without a policy for the pages' place, and no memory to serve one. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "faults.h"

#define FAILING_BLOCKS	16
#define MAPPING_CLIENTS	6
#define MAPPING_FIRST_NUMBER	10

static void load_all(struct client *client)
{
	wait_for(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_LOAD, MANAGED, BIG_PAGE, FATAL_COUNT), WAIT_MS, NULL, 0);
}

static uint32_t store_all(struct client *client)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, MANAGED, BIG_PAGE, FATAL_COUNT);
}

static char *written_memory(struct client *client)
{
	char *memory = managed_map(client, MANAGED, SIZE);

	memset(memory, 1, SIZE);
	return memory;
}

static void take_write_permission(char *memory)
{
	if (mprotect(memory, SIZE, PROT_READ) != 0)
		die("mprotect");
}

uint32_t managed_permission_cpu(struct client *client, struct scene *scene)
{
	take_write_permission(written_memory(client));
	return store_all(client);
}

/* What a GPU's load brought over is mapped as the CPU has it; a migration would map it for writing. */
uint32_t managed_permission_gpu(struct client *client, struct scene *scene)
{
	take_write_permission(written_memory(client));
	load_all(client);
	return store_all(client);
}

/* The pages may not leave the CPU; the GPU reads them there. */
uint32_t managed_policy_cpu(struct client *client, struct scene *scene)
{
	char *memory = written_memory(client);

	take_write_permission(memory);
	set_preferred_location(client, memory, SIZE, false);
	keep_in_place(client, memory, SIZE);
	load_all(client);
	return store_all(client);
}

uint32_t managed_policy_gpu(struct client *client, struct scene *scene)
{
	char *memory = written_memory(client);

	set_preferred_location(client, memory, SIZE, true);
	take_write_permission(memory);
	load_all(client);
	return store_all(client);
}

/* A read makes a copy on the GPU, and the CPU keeps its own. */
uint32_t managed_policy_doubled(struct client *client, struct scene *scene)
{
	char *memory = written_memory(client);

	enable_read_duplication(client, memory, SIZE);
	take_write_permission(memory);
	load_all(client);
	return store_all(client);
}

/* The policy wants the pages on the CPU, which has none to give. */
uint32_t out_of_memory(struct client *client, struct scene *scene)
{
	char *memory = managed_map(client, MANAGED, SIZE);

	set_preferred_location(client, memory, SIZE, false);
	fail_cpu_pages(client, memory, SIZE);
	return store_all(client);
}

/* Each of these blocks fails in a batch of its own, and the last ones long after the first. */
static void fail_again_and_again(struct client *client, struct scene *scene)
{
	char *memory = managed_map(client, MANAGED, FAILING_BLOCKS * STRIDE);
	struct gpu_model_access accesses[FAILING_BLOCKS];
	uint32_t program, i;

	set_preferred_location(client, memory, FAILING_BLOCKS * STRIDE, false);
	fail_cpu_pages(client, memory, FAILING_BLOCKS * STRIDE);
	for (i = 0; i < FAILING_BLOCKS; i++)
		accesses[i] = (struct gpu_model_access){ MANAGED + i * STRIDE, 1, GPU_MODEL_STORE, 8 };
	while (atomic_load(&scene->failing) == FAILING_WAITS)
		usleep(1000);
	program = launch(client, PROOF_CHANNEL_SM, GPU_MODEL_LANES_MAX, accesses, FAILING_BLOCKS, 1);
	atomic_store(&scene->failing, FAILING_NOW);
	while (wait_for(client, program, WAIT_MS, NULL, 0).state == GPU_MODEL_RUNNING)
		;
	atomic_store(&scene->failing, FAILING_OVER);
	_exit(0);
}

/* UVM sorts a batch by where its VA spaces lie, so one of several comes before the one that fails. */
static void map_what_is_faulted_on(struct client *client, struct scene *scene)
{
	uint64_t spared = module_counted("fault no_range spared");
	struct client clients[MAPPING_CLIENTS] = { *client };
	uint32_t programs[MAPPING_CLIENTS], i;

	for (i = 1; i < MAPPING_CLIENTS; i++)
		clients[i] = client_open(MAPPING_FIRST_NUMBER + i, client->gpu);
	atomic_store(&scene->failing, FAILING_MAY_BEGIN);
	while (atomic_load(&scene->failing) == FAILING_MAY_BEGIN)
		usleep(1000);
	for (i = 0; i < MAPPING_CLIENTS; i++)
		programs[i] = several(&clients[i], PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE + i * STRIDE, STRIDE, 1);
	while (atomic_load(&scene->failing) == FAILING_NOW && module_counted("fault no_range spared") == spared)
		usleep(1000);
	for (i = 0; i < MAPPING_CLIENTS; i++)
		managed_map(&clients[i], NOWHERE + i * STRIDE, STRIDE);
	found(client, scene, atomic_load(&scene->failing) == FAILING_NOW);
	for (i = 0; i < MAPPING_CLIENTS; i++)
		found(client, scene, programs[i] && wait_for(&clients[i], programs[i], WAIT_MS, NULL, 0).state == GPU_MODEL_DONE &&
				     *(volatile uint64_t *)(NOWHERE + i * STRIDE) == 1);
	for (i = 1; i < MAPPING_CLIENTS; i++)
		client_leave(&clients[i]);
	_exit(0);
}

/* One client's memory cannot be had; another maps what it faulted on while the batches fail, and has done nothing wrong. */
uint32_t mapped_meanwhile(struct client *client, struct scene *scene)
{
	if (client->number == 1)
		fail_again_and_again(client, scene);
	map_what_is_faulted_on(client, scene);
	return 0;
}
