// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Faults of clients that would rather not be ended, or would rather that others were. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "faults.h"

#define GIB		(1UL << 30)
#define WIDE_COUNT	1200
#define WIDE_STRIDE	(4 * GIB)
#define FEW_COUNT	40
#define ALL_BITS	47
#define ALL_COUNT	(1UL << 20)
#define ALL_STRIDE	((1UL << ALL_BITS) / ALL_COUNT)
#define ODD_FACTOR	611953UL
#define HUGE		0x600000000000UL
#define HUGE_SIZE	(64 * GIB)
#define HUGE_COUNT	200
#define USELESS_FAULTS	100

static struct {
	struct client *client;
	struct scene *scene;
} left_to_thread;

/* The process lives on in this thread until somebody ends it. */
static void *stay(void *unused)
{
	while (!atomic_load(&left_to_thread.scene->stop))
		usleep(10000);
	_exit(0);
}

/* Closes what the process has, in good order and while it is alive, before the process ends by itself. */
static void *leave_in_order(void *unused)
{
	client_close(left_to_thread.client);
	_exit(0);
}

/* The main thread ends alone: what the kernel shows as the process is a zombie from here on, and its threads live. */
static void end_main_thread(struct client *client, struct scene *scene, void *(*rest)(void *))
{
	pthread_t thread;

	left_to_thread.client = client;
	left_to_thread.scene = scene;
	if (pthread_create(&thread, NULL, rest, NULL) != 0)
		die("pthread_create");
	syscall(SYS_exit, 0);
}

uint32_t main_thread_ended(struct client *client, struct scene *scene)
{
	several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
	end_main_thread(client, scene, stay);
	return 0;
}

uint32_t main_thread_ended_in_order(struct client *client, struct scene *scene)
{
	end_main_thread(client, scene, leave_in_order);
	return 0;
}

/* What ps shows is what a process says of itself. */
void name_as_mps_server(void)
{
	if (prctl(PR_SET_NAME, "nvidia-cuda-mps-server") != 0)
		die("prctl");
}

uint32_t some_stores(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, FATAL_COUNT);
}

/* Wild pointers, as an index of the wrong type makes them. */
uint32_t wide_storm(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, WIDE_STRIDE, WIDE_COUNT);
}

uint32_t few_wide_stores(struct client *client, struct scene *scene)
{
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, WIDE_STRIDE, FEW_COUNT);
}

/* All over the lower half, in no order: the factor is odd, so each comes once. */
uint32_t endless_storm(struct client *client, struct scene *scene)
{
	struct gpu_model_access *accesses = calloc(ALL_COUNT, sizeof(*accesses));
	uint32_t program, i;

	if (!accesses)
		die("calloc");
	for (i = 0; i < ALL_COUNT; i++)
		accesses[i] = (struct gpu_model_access){ i * ODD_FACTOR % ALL_COUNT * ALL_STRIDE, i, GPU_MODEL_STORE, 8 };
	program = launch(client, PROOF_CHANNEL_SM, 8, accesses, ALL_COUNT, 1);
	free(accesses);
	return program;
}

/* A reserved range, as of cuMemAddressReserve, with next to nothing in it. */
uint32_t external_storm(struct client *client, struct scene *scene)
{
	external_range(client, HUGE, HUGE_SIZE);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, HUGE, HUGE_SIZE / HUGE_COUNT / BIG_PAGE * BIG_PAGE, HUGE_COUNT);
}

/* The GPU faults on although the entry is there, and more often than the module tries to help. */
uint32_t useless_sink(struct client *client, struct scene *scene)
{
	model_set("sparse_faults", USELESS_FAULTS);
	return several(client, PROOF_CHANNEL_SM, GPU_MODEL_STORE, NOWHERE, STRIDE, 1);
}
