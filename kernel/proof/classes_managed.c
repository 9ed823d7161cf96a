// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Fatal faults in managed ranges: permission, with and without a policy for the pages' place, and no memory to serve one. */
#include <string.h>
#include <sys/mman.h>
#include "faults.h"

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
