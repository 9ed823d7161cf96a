// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What becomes of a client whose process loses its descriptors, its program or its life while its kernels run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "faults.h"
#include "proof.h"

#define LEFT_MEMORY	0x480000000UL
#define LEFT_STORES	64
#define LEFT_REPEAT	4000
#define READ_WRITE	2

/* Long enough to go on for a while after its process has lost it; in memory that no mapping of a CPU's belongs to. */
static uint32_t long_kernel(struct client *client)
{
	struct gpu_model_access accesses[LEFT_STORES];
	uint32_t i;

	external_range(client, LEFT_MEMORY, STRIDE);
	external_map(client, LEFT_MEMORY, STRIDE, 16, READ_WRITE);
	for (i = 0; i < LEFT_STORES; i++)
		accesses[i] = (struct gpu_model_access){ LEFT_MEMORY + i * 4096, i, GPU_MODEL_STORE, 8 };
	return launch(client, PROOF_CHANNEL_SM, 4, accesses, LEFT_STORES, LEFT_REPEAT);
}

static void execute(const char *what, const char *argument, const char *other)
{
	execl("/proc/self/exe", "proof", what, argument, other, NULL);
	die("execl");
}

/* CUDA's descriptors are closed with it, and the process lives. */
uint32_t executed(struct client *client, struct scene *scene)
{
	long_kernel(client);
	execute("nothing", NULL, NULL);
	return 0;
}

/* As one that becomes a daemon does. */
uint32_t closed(struct client *client, struct scene *scene)
{
	long_kernel(client);
	client_close(client);
	_exit(0);
}

/* The process waits in another program for the time at which it would be killed, and says that it lives on. */
uint32_t another_program(struct client *client, struct scene *scene)
{
	char number[16], before[24];
	char word = 0;
	int ends[2];

	snprintf(before, sizeof(before), "%lu", module_counted("not_killed"));
	if (pipe(ends) != 0)
		die("pipe");
	if (fork() == 0) {
		client_close(client);
		close(ends[1]);
		found(client, scene, read(ends[0], &word, 1) == 1);
		_exit(0);
	}
	close(ends[0]);
	wait_for(client, several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, 1), WAIT_MS, NULL, 0);
	snprintf(number, sizeof(number), "%d", ends[1]);
	execute("lives", number, before);
	return 0;
}

/* Nothing of the process's memory is UVM's, whose unmapping waits for the machine to wake with the stock module too. */
uint32_t killed_asleep(struct client *client, struct scene *scene)
{
	munmap((void *)FAULTER_MEMORY, FAULTER_MEMORY_SIZE);
	return long_kernel(client);
}

int run_lives(const char *descriptor, const char *before)
{
	uint64_t count = before ? strtoul(before, NULL, 10) : 0;
	uint32_t waited;

	for (waited = 0; waited < WAIT_MS && module_counted("not_killed") == count; waited += 10)
		usleep(10000);
	return descriptor && write((int)strtoul(descriptor, NULL, 10), "l", 1) == 1 ? 0 : 1;
}
