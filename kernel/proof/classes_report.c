// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Mode 1: what it says of a fault is all that it does. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "faults.h"

#define READ_ONLY	0x400000000UL
#define OTHER_CHANNEL	10
#define OTHER_GROUP	20
#define RESET_DELAY_MS	500
#define USUAL_DELAY_MS	20
#define UVM_MAPPING_READ_ONLY	3

static const char *const untouched[] = { "sinks", "table_kib", "condemned", "killed" };
static const char *const foreseen[] = {
	"foreseen fault no_range contained", "foreseen fault external contained", "foreseen fault managed contained"
};
static const uint64_t addresses[] = { NOWHERE, READ_ONLY, MANAGED };

#define UNTOUCHED	(sizeof(untouched) / sizeof(untouched[0]))
#define PLACES		(sizeof(addresses) / sizeof(addresses[0]))

static void count(const char *const *names, uint32_t number, uint64_t *counts)
{
	uint32_t i;

	for (i = 0; i < number; i++)
		counts[i] = module_counted(names[i]);
}

/* On a channel whose group is still alive. */
static bool store_faults(struct client *client, uint32_t place)
{
	uint32_t program;

	client_add_channel(client, OTHER_CHANNEL + place, OTHER_GROUP + place);
	program = several(client, OTHER_CHANNEL + place, GPU_MODEL_STORE, addresses[place], STRIDE, 1);
	return program && wait_for(client, program, WAIT_MS, NULL, 0).state == GPU_MODEL_KILLED;
}

/* One fault in each place, all before the group is reset. What would have been a sink is none: a store faults there again. */
uint32_t only_reported(struct client *client, struct scene *scene)
{
	uint64_t before[UNTOUCHED], after[UNTOUCHED], said_before[PLACES], said[PLACES];
	struct gpu_model_access accesses[PLACES];
	char *memory = managed_map(client, MANAGED, SIZE);
	uint32_t i;

	memset(memory, 1, SIZE);
	if (mprotect(memory, SIZE, PROT_READ) != 0)
		die("mprotect");
	external_range(client, READ_ONLY, STRIDE);
	external_map(client, READ_ONLY, STRIDE, 15, UVM_MAPPING_READ_ONLY);
	for (i = 0; i < PLACES; i++)
		accesses[i] = (struct gpu_model_access){ addresses[i], 2, GPU_MODEL_STORE, 8 };
	count(untouched, UNTOUCHED, before);
	count(foreseen, PLACES, said_before);
	model_set("reset_delay_ms", RESET_DELAY_MS);
	wait_for(client, launch(client, PROOF_CHANNEL_SM, PLACES, accesses, PLACES, 1), WAIT_MS, NULL, 0);
	model_set("reset_delay_ms", USUAL_DELAY_MS);
	for (i = 0; i < PLACES; i++)
		found(client, scene, store_faults(client, i));
	count(foreseen, PLACES, said);
	count(untouched, UNTOUCHED, after);
	for (i = 0; i < PLACES; i++)
		found(client, scene, said[i] > said_before[i]);
	for (i = 0; i < UNTOUCHED; i++)
		found(client, scene, after[i] == before[i]);
	found(client, scene, module_counted("foreseen sinks") >= PLACES && memory[0] == 1);
	return 0;
}
